#include "core/base/memory.hpp"

#include <cstdint>

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

}  // namespace ckce
