// Preloaded by test_faults.py: the n-th allocation that the core or the C++ library asks for fails.
// Those of a few words are left alone: pybind11 cannot do without them when it wraps a result.
#define _GNU_SOURCE
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);

static struct {
  char *begin, *end;
} watched[16];
static int n_watched;
static long left;     // allocations until the one that fails; not armed at 0
static int for_good;  // all after it fail, too
static int fired;

static int watch(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size, (void)data;
  if (!strstr(info->dlpi_name, "_core_") && !strstr(info->dlpi_name, "libstdc++")) return 0;
  for (int i = 0; i < info->dlpi_phnum && n_watched < 16; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
    watched[n_watched].begin = (char*)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    watched[n_watched].end = watched[n_watched].begin + info->dlpi_phdr[i].p_memsz;
    ++n_watched;
  }
  return 0;
}

void arm_malloc(long n, int stay) {
  if (!n_watched) dl_iterate_phdr(watch, NULL);
  fired = 0;
  for_good = stay;
  __atomic_store_n(&left, n, __ATOMIC_SEQ_CST);
}

int disarm_malloc(void) {  // how many allocations failed
  __atomic_store_n(&left, 0, __ATOMIC_SEQ_CST);
  return fired;
}

static int fails(char* caller, size_t size) {
  if (size < 200 || __atomic_load_n(&left, __ATOMIC_SEQ_CST) <= 0) return 0;
  int ours = 0;
  for (int i = 0; i < n_watched; ++i) ours |= caller >= watched[i].begin && caller < watched[i].end;
  if (!ours || __atomic_sub_fetch(&left, 1, __ATOMIC_SEQ_CST) > 0) return 0;
  if (for_good) __atomic_store_n(&left, 1, __ATOMIC_SEQ_CST);
  __atomic_add_fetch(&fired, 1, __ATOMIC_SEQ_CST);
  errno = ENOMEM;
  return 1;
}

#define FAILS(size) fails(__builtin_return_address(0), size)

void* malloc(size_t size) { return FAILS(size) ? NULL : __libc_malloc(size); }
void* calloc(size_t n, size_t size) { return FAILS(n * size) ? NULL : __libc_calloc(n, size); }
void* realloc(void* old, size_t size) { return FAILS(size) ? NULL : __libc_realloc(old, size); }
void* memalign(size_t align, size_t size) {
  return FAILS(size) ? NULL : __libc_memalign(align, size);
}
void* aligned_alloc(size_t align, size_t size) {
  return FAILS(size) ? NULL : __libc_memalign(align, size);
}
int posix_memalign(void** out, size_t align, size_t size) {
  if (FAILS(size)) return ENOMEM;
  void* memory = __libc_memalign(align, size);
  if (!memory) return ENOMEM;
  *out = memory;
  return 0;
}
