#include "exec/callers_streams.h"

#include "exec/dispatch.h"

namespace lamina {

CallersStreams::One& CallersStreams::take() {
  One* one = nullptr;
  for (auto& slot : free_)
    if (one == nullptr && slot.load(std::memory_order_relaxed) != nullptr)
      one = slot.exchange(nullptr, std::memory_order_acq_rel);
  if (one == nullptr) {
    const std::lock_guard lock(Dispatch::here().mutex);
    if (!more_.empty()) {
      one = more_.back();
      more_.pop_back();
    }
  }
  if (one == nullptr) {
    auto fresh = std::make_unique<One>(place_, threads_, binding_);
    one = fresh.get();
    const std::lock_guard lock(Dispatch::here().mutex);
    more_.reserve(all_.size() + 1);
    all_.push_back(std::move(fresh));
  }
  one->user = std::this_thread::get_id();
  return *one;
}

void CallersStreams::give_back(One& one) noexcept {
  one.user = std::thread::id();
  for (auto& slot : free_) {
    One* none = nullptr;
    if (slot.load(std::memory_order_relaxed) == nullptr &&
        slot.compare_exchange_strong(none, &one, std::memory_order_acq_rel))
      return;
  }
  const std::lock_guard lock(Dispatch::here().mutex);
  more_.push_back(&one);
}

void CallersStreams::child_begins() noexcept {
  for (auto& slot : free_) slot = nullptr;
  more_.clear();
  for (const auto& one : all_) {
    if (one->user.load() == std::this_thread::get_id()) continue;
    one->user = std::thread::id();
    more_.push_back(one.get());
  }
}

}  // namespace lamina
