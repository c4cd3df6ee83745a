#include "exec/timing.h"

#include <algorithm>
#include <chrono>

#include "base/cancellation.h"
#include "base/thread_number.h"
#include "base/threads.h"
#include "base/ticks.h"

namespace lamina {
namespace {
using Clock = std::chrono::steady_clock;

/// Shares the thread's processor time out to steps, whose times may be of any unit. Its clock is a call of
/// the system: read after so many ticks, and shared out by how long the steps since then took.
class ProcessorTime {
 public:
  ProcessorTime(std::vector<StepTime>& times, double patience) : times_(times), patience_(patience) {}

  /// Adds the time of step `s`, which ended at `now`.
  void add(std::size_t s, std::uint64_t now) {
    if (static_cast<double>(now - read_) >= patience_) share(s + 1);
  }
  /// To be called when the steps before `end` have run.
  void share(std::size_t end) {
    const double cpu = thread_microseconds();
    double wall = 0;
    for (auto i = done_; i < end; ++i) wall += times_[i].microseconds;
    for (; done_ < end; ++done_)
      times_[done_].cpu_microseconds = wall > 0 ? (cpu - cpu_) * times_[done_].microseconds / wall : 0;
    cpu_ = cpu;
    read_ = ticks();
  }

 private:
  std::vector<StepTime>& times_;
  const double patience_;
  std::size_t done_ = 0;
  double cpu_ = thread_microseconds();
  std::uint64_t read_ = ticks();
};
/// Runs the steps, each after a stop point, and says in which one the run was stopped. `run`: runs one.
template <class F>
void run_stoppable_steps(Bound& bound, Activity& stream, const F& run) {
  constexpr std::size_t kMany = 16;  // short steps, after which the clock is read
  const auto steps = bound.steps();
  std::size_t s = 0;
  try {
    for (; s < steps; ++s) {
      stream.checkpoint();
      if (const auto* scope = StopScope::here())
        if (bound.is_long(s) || s % kMany == kMany - 1 ? scope->must_stop() : scope->stop_requested())
          scope->stop();
      run(s);
    }
  } catch (Stopped& stopped) {
    stopped.at(fmt::format("layer \"{}\"", bound.plan()->steps[s].name));
    throw;
  }
}

}  // namespace

void run_steps(Bound& bound, Activity& stream) {
  run_stoppable_steps(bound, stream, [&](std::size_t s) { bound.run_step(s); });
}

void StepTimes::forget() noexcept {
  done_ = false;
  for (auto& c : controls_) c.layers.clear();
}

void StepTimes::prepare(const Plan& plan) {
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const auto& step = plan.steps[s];
    times_.push_back({&step, 0});
    if (step.node.valid() && plan.graph.node(step.node).op.has(Trait::control_flow))
      controls_.push_back({s, {}});
  }
}

void StepTimes::run(Bound& bound, Activity& stream) {
  done_ = false;
  if (times_.empty()) prepare(*bound.plan());
  if (unread_ > 0) {
    --unread_;
    run_timed(bound, stream, [](std::size_t, std::uint64_t) {});
    for (auto& t : times_) t.cpu_microseconds = busy_ * t.microseconds;
  } else {
    ProcessorTime processor(times_, 200 / tick_);
    run_timed(bound, stream, [&](std::size_t s, std::uint64_t now) { processor.add(s, now); });
    processor.share(times_.size());
    double wall = 0, cpu = 0;
    for (const auto& t : times_) {
      wall += t.microseconds;
      cpu += t.cpu_microseconds;
    }
    // Reading the clock costs as much as some steps: short runs take the value of the last time.
    busy_ = wall > 0 ? std::min(cpu / wall, 1.0) : 1;
    if (cpu > wall)  // reading it is a part of it
      for (auto& t : times_) t.cpu_microseconds *= wall / cpu;
    unread_ = wall < 1000 ? 15 : 0;
  }
  done_ = true;
}

/// Times a run: a clock gives the time of the whole, processor ticks the share of each step.
template <class F>
void StepTimes::run_timed(Bound& bound, Activity& stream, const F& after) {
  auto control = controls_.begin();
  const auto begun = Clock::now();
  const auto first = ticks();
  auto before = first;
  run_stoppable_steps(bound, stream, [&](std::size_t s) {
    if (control != controls_.end() && control->step == s) {
      const SeenLayers seen(control->layers);
      bound.run_step(s);
      ++control;
    } else {
      bound.run_step(s);
    }
    const auto now = ticks();
    times_[s].microseconds = static_cast<double>(now - before);
    before = now;
    after(s, now);
  });
  const std::chrono::duration<double, std::micro> whole = Clock::now() - begun;
  if (before > first) tick_ = whole.count() / static_cast<double>(before - first);
  const auto thread = thread_number();
  double at = 0;  // microseconds since the first step began
  for (auto& t : times_) {
    t.began =
        begun + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::micro>(at));
    t.thread = thread;
    t.microseconds *= tick_;
    at += t.microseconds;
  }
}

}  // namespace lamina
