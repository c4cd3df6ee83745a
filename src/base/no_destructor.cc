#include "base/no_destructor.h"

#include <unistd.h>

#include "base/exiting.h"
#include "base/quiescence.h"

namespace lamina {
namespace {

std::atomic<bool> closes{false};
std::atomic<DestroyedAtClose*> newest{nullptr};

/// Both dlclose() and exit() come here. dlclose() comes here first, in the order of DT_FINI_ARRAY, in which
/// the compiler's own entry for static objects is the first one and the last to be called. Before exit()
/// comes here, it has called what notice_exit() registered when threads began to use lamina.
[[gnu::destructor]] void on_close() {
  closes = !is_exiting();
  if (closes) Quiescence::await_forks();
}

/// Made when the library is loaded, so it is destroyed after what runs at dlclose() and was registered later.
struct AtClose {
  ~AtClose() {
    if (closes) DestroyedAtClose::destroy_all();
  }
} at_close;

}  // namespace

bool MakeOnce::begin() noexcept {
  const int process = ::getpid();
  for (int maker = maker_.load(std::memory_order_acquire); maker != kMade;) {
    if (maker != process) {  // nobody, or a thread of the parent, which is not here
      if (maker_.compare_exchange_weak(maker, process, std::memory_order_acquire)) return true;
      continue;
    }
    maker_.wait(maker, std::memory_order_acquire);
    maker = maker_.load(std::memory_order_acquire);
  }
  return false;
}

void MakeOnce::end(int maker) noexcept {
  maker_.store(maker, std::memory_order_release);
  maker_.notify_all();
}

void DestroyedAtClose::enlist(void (*destroy)(void*), void* object) noexcept {
  if (destroy_ != nullptr) return;
  destroy_ = destroy;
  object_ = object;
  older_ = newest.load(std::memory_order_relaxed);
  while (!newest.compare_exchange_weak(older_, this, std::memory_order_release)) continue;
}

void DestroyedAtClose::destroy_all() {
  for (auto* x = newest.exchange(nullptr, std::memory_order_acquire); x != nullptr; x = x->older_)
    x->destroy_(x->object_);
}

bool library_closes() noexcept { return closes; }

}  // namespace lamina
