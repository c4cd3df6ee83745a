#pragma once
/// Work that can be stopped before it is done: by its user or by a deadline; a fork() pauses it
/// (base/quiescence.h). All code that may take long calls stop_point() at least every few milliseconds.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/quiescence.h"

namespace lamina {

/// Says whether somebody wants work to end. Asked very often, by any thread.
class StopSignal {
 public:
  virtual bool stop_requested() const noexcept = 0;

 protected:
  ~StopSignal() = default;
};

/// How a piece of work can be stopped, and what it may take.
struct StopRules {
  const StopSignal* signal = nullptr;                                       ///< null: nobody asks for it
  std::string_view what = "the inference";                                  ///< what errors call the work
  double seconds = 0;                                                       ///< that it may take; 0: any
  std::string_view seconds_key = {};                                        ///< the option that says so
  std::int64_t loop_iterations = std::numeric_limits<std::int64_t>::max();  ///< of one loop of the model
  /// What StopPoints count goes off here; below 0 the work must stop. Does not depend on how fast the machine
  /// is, nor on its threads. Null: nobody counts.
  std::atomic<std::int64_t>* units = nullptr;
};

class StopScope;

/// Thrown by a stop point. It is no std::exception and no Error, so that code that makes something else of an
/// Error (a rule that refuses, a reader that adds a place) lets it pass. run_stoppable() makes an Error of
/// it.
class Stopped {
 public:
  explicit Stopped(const StopScope* by) noexcept : by_(by) {}
  const StopScope* by() const noexcept { return by_; }
  /// Sets where the work was: 'layer "x"'. The outermost place counts.
  void at(std::string place) { place_ = std::move(place); }
  const std::string& place() const noexcept { return place_; }

 private:
  const StopScope* by_;
  std::string place_;
};

/// While one lives, what the calling thread does can be stopped by its rules, and so can what helpers do in
/// loops that this thread starts (base/parallel.h). Scopes of one thread nest: inner work ends with the outer
/// one. The user's own code, which callbacks run, is outside of all (InUsersCallback).
class StopScope {
 public:
  explicit StopScope(const StopRules& rules) noexcept : rules_(rules), outer_(current_) { current_ = this; }
  ~StopScope() { current_ = outer_; }
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;

  /// The calling thread's innermost one, or null.
  static const StopScope* here() noexcept { return current_; }
  /// The calling thread is in none, until it enters it again.
  static const StopScope* leave() noexcept { return std::exchange(current_, nullptr); }
  static void enter(const StopScope* scope) noexcept { current_ = scope; }
  /// Iterations that a loop may run here.
  static std::int64_t loop_iterations() noexcept;

  /// Somebody wants it or an outer one to end.
  bool stop_requested() const noexcept {
    for (const auto* s = this; s != nullptr; s = s->outer_)
      if (s->is_asked() || s->is_used_up()) return true;
    return false;
  }
  /// True if a stop is requested, or the time of this scope or of an outer one is over.
  bool must_stop() const noexcept {
    for (const auto* s = this; s != nullptr; s = s->outer_)
      if (s->is_asked() || s->is_used_up() || s->is_late()) return true;
    return false;
  }
  /// Counts `units` of finished work.
  void count(std::int64_t units) const noexcept {
    for (const auto* s = this; s != nullptr; s = s->outer_)
      if (s->rules_.units != nullptr) s->rules_.units->fetch_sub(units, std::memory_order_relaxed);
  }
  /// Throws Stopped, by the scope that has to stop.
  [[noreturn]] void stop() const;
  /// What Stopped by this scope becomes.
  Error error(const std::string& place) const;

 private:
  bool is_asked() const noexcept { return rules_.signal != nullptr && rules_.signal->stop_requested(); }
  bool is_used_up() const noexcept {
    return rules_.units != nullptr && rules_.units->load(std::memory_order_relaxed) < 0;
  }
  bool is_late() const noexcept { return rules_.seconds > 0 && time_is_over(); }
  bool time_is_over() const noexcept;

  static constinit thread_local const StopScope* current_;
  StopRules rules_;
  const StopScope* outer_;
  mutable std::atomic<std::int64_t> due_{0};  // nanoseconds of the clock; 0: nobody has looked yet
};

/// The calling thread works for another thread's scope, or for none (null), while it lives.
class StopScopeOf {
 public:
  explicit StopScopeOf(const StopScope* scope) noexcept : before_(StopScope::leave()) {
    StopScope::enter(scope);
  }
  ~StopScopeOf() { StopScope::enter(before_); }
  StopScopeOf(const StopScopeOf&) = delete;
  StopScopeOf& operator=(const StopScopeOf&) = delete;

 private:
  const StopScope* before_;
};

/// A point in the middle of work: throws Stopped if the work must stop, and pauses during a quiescent state
/// unless a Quiescence::Moving forbids it. No lock may be held that others wait for. Reads the clock, which
/// takes some 20 ns.
inline void stop_point() {
  if (const auto* scope = StopScope::here(); scope != nullptr && scope->must_stop()) [[unlikely]]
    scope->stop();
  if (Quiescence::is_wanted()) [[unlikely]]
    Quiescence::pause_here();
}
/// A stop point without the clock, for points less than some 20 us apart: it does not see a deadline.
inline void quick_stop_point() {
  if (const auto* scope = StopScope::here(); scope != nullptr && scope->stop_requested()) [[unlikely]]
    scope->stop();
  if (Quiescence::is_wanted()) [[unlikely]]
    Quiescence::pause_here();
}

/// A stop point once in so many units of work, for loops whose turns are short.
class StopPoints {
 public:
  /// `units` take a fraction of a millisecond: simple operations on numbers.
  explicit StopPoints(std::int64_t units = 1 << 16) noexcept : units_(units), left_(units) {}
  ~StopPoints() { count(); }
  StopPoints(const StopPoints&) = delete;
  StopPoints& operator=(const StopPoints&) = delete;
  /// Counts `done` more units.
  void operator()(std::int64_t done = 1) {
    if ((left_ -= done) > 0) return;
    count();
    stop_point();
  }

 private:
  void count() noexcept {
    if (const auto* scope = StopScope::here()) scope->count(units_ - left_);
    left_ = units_;
  }
  const std::int64_t units_;
  std::int64_t left_;
};

/// A comparison with stop points, by which many elements may be sorted.
template <class Less>
auto comparing(StopPoints& points, Less less) {
  return [&points, less](const auto& a, const auto& b) {
    points();
    return less(a, b);
  };
}

/// Calls body(begin, end) for pieces of [0, count), with stop points between them.
template <class F>
void for_pieces(std::size_t count, const F& body) {
  constexpr std::size_t kPiece = std::size_t{1} << 16;
  StopPoints points(kPiece);
  for (std::size_t begin = 0; begin < count; begin += kPiece) {
    const auto size = count - begin < kPiece ? count - begin : kPiece;
    body(begin, begin + size);
    points(static_cast<std::int64_t>(size));
  }
}

/// The body's result, as work by these rules. Where they stop it: Error(canceled), or Error(over_limit) that
/// names the place, the seconds and the key. Stopped by what is around it goes on to that.
template <class F>
decltype(auto) run_stoppable(const StopRules& rules, F&& body) {
  const StopScope here(rules);
  try {
    return std::forward<F>(body)();
  } catch (const Stopped& stopped) {
    if (stopped.by() != &here) throw;
    throw here.error(stopped.place());
  }
}

}  // namespace lamina
