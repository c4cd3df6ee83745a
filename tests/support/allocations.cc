#include "tests/support/allocations.h"

#include <link.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

namespace lamina::testing::allocations {
namespace {

std::atomic<bool> counting{false}, failing{false}, lasts{false}, did_fail{false};
std::atomic<std::size_t> count_of_all{0}, bytes_of_all{0};
std::atomic<std::int64_t> left{0};

/// Where oneDNN's code lies. It reads behind null pointers when an allocation of its own fails, which nobody
/// can mend from outside: those do not fail here.
struct Range {
  std::uintptr_t begin = 0, end = 0;
} onednn;

void find_onednn() {
  if (onednn.end != 0) return;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void*) {
        if (!std::strstr(info->dlpi_name, "libdnnl.so")) return 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& part = info->dlpi_phdr[i];
          if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
          onednn.begin = info->dlpi_addr + part.p_vaddr;
          onednn.end = onednn.begin + part.p_memsz;
        }
        return 0;
      },
      nullptr);
}

/// True when this allocation has to fail; `caller`: whose it is.
bool fails(const void* caller, std::size_t bytes) {
  if (counting.load(std::memory_order_relaxed)) {
    ++count_of_all;
    bytes_of_all += bytes;
  }
  if (!failing.load(std::memory_order_relaxed)) return false;
  const auto at = reinterpret_cast<std::uintptr_t>(caller);
  if (at >= onednn.begin && at < onednn.end) return false;
  const auto now = left.fetch_sub(1, std::memory_order_relaxed);
  if (now > 1 || (now < 1 && !lasts)) return false;
  did_fail = true;
  return true;
}

}  // namespace

void count(bool on) { counting = on; }
std::size_t counted() { return count_of_all; }
std::size_t counted_bytes() { return bytes_of_all; }
void forget_counted() { count_of_all = bytes_of_all = 0; }

void fail_at(std::size_t n, Shortage shortage) {
  find_onednn();
  left = static_cast<std::int64_t>(n);
  lasts = shortage == Shortage::lasting;
  did_fail = false;
  failing = true;
}

bool end_failures() {
  failing = false;
  return did_fail;
}

Pause::Pause() : was_(failing.exchange(false)) {}
Pause::~Pause() { failing = was_; }

}  // namespace lamina::testing::allocations

using lamina::testing::allocations::fails;

#define CALLER __builtin_return_address(0)

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// glibc's functions behind the ones that this program replaces.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

static void* none() {
  errno = ENOMEM;
  return nullptr;
}

void* malloc(std::size_t bytes) { return fails(CALLER, bytes) ? none() : __libc_malloc(bytes); }
void* calloc(std::size_t count, std::size_t bytes) {
  return fails(CALLER, count * bytes) ? none() : __libc_calloc(count, bytes);
}
void* realloc(void* old, std::size_t bytes) {
  return fails(CALLER, bytes) ? none() : __libc_realloc(old, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return fails(CALLER, bytes) ? none() : __libc_memalign(alignment, bytes);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
  void* const memory = fails(CALLER, bytes) ? nullptr : __libc_memalign(alignment, bytes);
  if (!memory) return ENOMEM;
  *out = memory;
  return 0;
}
}
#define UNCOUNTED_MALLOC __libc_malloc
#else
#define UNCOUNTED_MALLOC std::malloc
#endif

// A function of its own, so that the caller is known.
static void* allocated(std::size_t bytes, const void* caller) {
  return fails(caller, bytes) ? nullptr : UNCOUNTED_MALLOC(bytes ? bytes : 1);
}
static void* or_throw(void* memory) {
  if (!memory) throw std::bad_alloc();
  return memory;
}

void* operator new(std::size_t bytes) { return or_throw(allocated(bytes, CALLER)); }
void* operator new[](std::size_t bytes) { return or_throw(allocated(bytes, CALLER)); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return allocated(bytes, CALLER); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return allocated(bytes, CALLER); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
