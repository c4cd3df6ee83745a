#include "base/cancellation.h"

#include <algorithm>

namespace lamina {
namespace {

std::int64_t now() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

constinit thread_local const StopScope* StopScope::current_ = nullptr;

std::int64_t StopScope::loop_iterations() noexcept {
  auto least = std::numeric_limits<std::int64_t>::max();
  for (const auto* s = here(); s != nullptr; s = s->outer_)
    least = std::min(least, s->rules_.loop_iterations);
  return least;
}

/// The time begins when it is looked at first: runs that are done before that never read the clock.
bool StopScope::time_is_over() const noexcept {
  const auto time = now();
  auto due = due_.load(std::memory_order_relaxed);
  if (due != 0) return time >= due;
  const auto ours = time + std::max<std::int64_t>(1, static_cast<std::int64_t>(rules_.seconds * 1e9));
  due_.compare_exchange_strong(due, ours, std::memory_order_relaxed);
  return false;
}

void StopScope::stop() const {
  for (const auto* s = this; s != nullptr; s = s->outer_)
    if (s->is_asked() || s->is_used_up() || s->is_late()) throw Stopped(s);
  throw Stopped(this);
}

Error StopScope::error(const std::string& place) const {
  if (is_asked() || !is_late())
    return Error(ErrorCode::canceled, fmt::format("{} was canceled", rules_.what));
  return Error(ErrorCode::over_limit,
               fmt::format("{}{}{} took more than {} s ({})", place, place.empty() ? "" : ": ", rules_.what,
                           rules_.seconds, rules_.seconds_key));
}

}  // namespace lamina
