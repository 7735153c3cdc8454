#include "core/base/memory.hpp"

#include <cstdint>
#include <cstdlib>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace ckce {

void expect_use(void* data, std::size_t bytes) {
#if defined(__linux__)
  constexpr std::uintptr_t kPage = 4096;
  const auto start = reinterpret_cast<std::uintptr_t>(data);
  const auto begin = (start + kPage - 1) / kPage * kPage;
  if (bytes >= 4194304)
    madvise(reinterpret_cast<void*>(begin), start + bytes - begin, MADV_HUGEPAGE);
#else
  static_cast<void>(data);
  static_cast<void>(bytes);
#endif
}

// glibc hands free memory back to the system from twice the size of the largest mapped block on
// that was ever freed, and no block above 32 MB counts. This one is never written to.
void keep_freed_memory() {
#if defined(__GLIBC__)
  void* volatile block = std::malloc((std::size_t{32} << 20) - (std::size_t{64} << 10));
  std::free(block);
#endif
}

}  // namespace ckce
