// Hints about memory that is about to be read or written.
#pragma once

#include "core/base/types.hpp"

namespace ckce {

// Asks for what will be read soon, so that memory is busy while the rows at hand are used.
inline void fetch_ahead(const char* at, Index bytes) {
#if defined(__GNUC__)
  constexpr Index kAhead = 4096;
  for (Index line = 0; line < bytes; line += 64) __builtin_prefetch(at + kAhead + line);
#else
  static_cast<void>(at);
  static_cast<void>(bytes);
#endif
}

// Asks for large pages for what is about to be written: a page fault each 4 kB costs more than the
// writing.
void expect_use(void* data, std::size_t bytes);

// Lets the allocator keep up to 64 MB of what calls free, so that the next call takes no page
// faults.
void keep_freed_memory();

// A matrix that is about to be written.
template <class AnyMatrix>
AnyMatrix unset(Index rows, Index cols) {
  AnyMatrix matrix(rows, cols);
  expect_use(matrix.data(), sizeof(*matrix.data()) * as_size(matrix.size()));
  return matrix;
}

}  // namespace ckce
