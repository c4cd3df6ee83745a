#include "base/works_for.h"

#include <utility>

namespace lamina {
namespace {

thread_local const WorksFor* works_here = nullptr;
thread_local const Helping* helps_here = nullptr;

}  // namespace

WorksFor::WorksFor(const void* what) noexcept : what_(what), outer_(std::exchange(works_here, this)) {}
WorksFor::~WorksFor() { works_here = outer_; }
bool WorksFor::anything() noexcept { return works_here != nullptr; }

bool WorksFor::has(const void* what) noexcept {
  const auto* w = works_here;
  while (w != nullptr && w->what_ != what) w = w->outer_;
  return w != nullptr;
}

LoopCaller LoopCaller::here() noexcept { return {std::this_thread::get_id(), works_here, helps_here}; }

Helping::Helping(const LoopCaller& caller) noexcept
    : caller_(caller), helps_(caller.thread != std::this_thread::get_id()) {
  if (!helps_) return;
  before_ = LoopCaller::here();
  works_here = caller.works;
  helps_here = this;
}

Helping::~Helping() {
  if (!helps_) return;
  works_here = before_.works;
  helps_here = before_.helps;
}

bool Helping::is_here() noexcept { return helps_here != nullptr; }

/// The caller of the loop, and those that it helps itself.
bool Helping::helps(std::thread::id thread) noexcept {
  const auto* h = helps_here;
  while (h != nullptr && h->caller_.thread != thread) h = h->caller_.helps;
  return h != nullptr;
}

}  // namespace lamina
