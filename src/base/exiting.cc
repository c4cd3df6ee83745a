#include "base/exiting.h"

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "base/no_destructor.h"
#include "base/quiescence.h"

namespace lamina {
namespace {

std::atomic<bool> exiting{false};

using Kept = std::vector<std::shared_ptr<const void>>;

}  // namespace

void notice_exit() noexcept {
  constexpr int kMost = 4096;
  static std::atomic<int> calls{0};
  if (calls.load(std::memory_order_relaxed) >= kMost || calls.fetch_add(1) >= kMost) return;
  // A child of fork() would find the C library's lock of such calls taken by a thread that it does not have.
  const Quiescence::Undisturbed no_fork;
  std::atexit([] { exiting = true; });
}

bool is_exiting() noexcept { return exiting.load(std::memory_order_relaxed) && !library_closes(); }

void keep_at_exit(const std::shared_ptr<const void>& what) noexcept {
  if (!is_exiting()) return;
  static NoDestructor<Kept> kept;
  const Quiescence::Undisturbed lock;
  try {
    (*kept).push_back(what);
  } catch (const std::bad_alloc&) {  // then it goes
  }
}

}  // namespace lamina
