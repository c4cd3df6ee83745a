#include "base/awaited_by.h"

#include <utility>

namespace lamina {
namespace {

thread_local const AwaitedBy* awaited_by = nullptr;
thread_local const LoopHelper* helper = nullptr;

}  // namespace

AwaitedBy::AwaitedBy(const void* what) noexcept : what_(what), outer_(std::exchange(awaited_by, this)) {}
AwaitedBy::~AwaitedBy() { awaited_by = outer_; }
bool AwaitedBy::anything() noexcept { return awaited_by != nullptr; }

bool AwaitedBy::has(const void* what) noexcept {
  const auto* by = awaited_by;
  while (by != nullptr && by->what_ != what) by = by->outer_;
  return by != nullptr;
}

LoopCaller LoopCaller::here() noexcept {
  return {std::this_thread::get_id(), lamina::awaited_by, lamina::helper};
}

LoopHelper::LoopHelper(const LoopCaller& caller) noexcept
    : caller_(caller), helps_(caller.thread != std::this_thread::get_id()) {
  if (!helps_) return;
  before_ = LoopCaller::here();
  awaited_by = caller.awaited_by;
  helper = this;
}

LoopHelper::~LoopHelper() {
  if (!helps_) return;
  awaited_by = before_.awaited_by;
  helper = before_.helper;
}

bool LoopHelper::is_here() noexcept { return helper != nullptr; }

bool LoopHelper::is_awaited_by(std::thread::id thread) noexcept {
  const auto* h = helper;
  while (h != nullptr && h->caller_.thread != thread) h = h->caller_.helper;
  return h != nullptr;
}

}  // namespace lamina
