#include "exec/timing.h"

#include <algorithm>
#include <chrono>

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

  void add(std::uint64_t now) {
    if (static_cast<double>(now - read_) >= patience_) share();
  }
  void share() {
    const double cpu = thread_microseconds();
    double wall = 0;
    for (auto i = done_; i < times_.size(); ++i) wall += times_[i].microseconds;
    for (; done_ < times_.size(); ++done_)
      if (wall > 0) times_[done_].cpu_microseconds = (cpu - cpu_) * times_[done_].microseconds / wall;
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
}  // namespace

void run_steps(Bound& bound, const Checkpoint& checkpoint) {
  const auto steps = bound.plan()->steps.size();
  for (std::size_t s = 0; s < steps; ++s) {
    checkpoint();
    bound.run_step(s);
  }
}

void StepTimes::run(Bound& bound, const Checkpoint& checkpoint) {
  times_.clear();
  times_.reserve(bound.plan()->steps.size());
  if (unread_ > 0) {
    --unread_;
    run_timed(bound, checkpoint, [](std::uint64_t) {});
    for (auto& t : times_) t.cpu_microseconds = busy_ * t.microseconds;
    return count();
  }
  ProcessorTime processor(times_, 200 / tick_);
  run_timed(bound, checkpoint, [&](std::uint64_t now) { processor.add(now); });
  processor.share();
  double wall = 0, cpu = 0;
  for (const auto& t : times_) {
    wall += t.microseconds;
    cpu += t.cpu_microseconds;
  }
  // To read it costs as much as some steps: in short runs it is taken to be as it was the last time.
  busy_ = wall > 0 ? std::min(cpu / wall, 1.0) : 1;
  unread_ = wall < 100 ? 15 : 0;
  count();
}

/// A clock tells how long the whole takes, ticks how it is shared by steps.
template <class F>
void StepTimes::run_timed(Bound& bound, const Checkpoint& checkpoint, const F& after) {
  const auto& steps = bound.plan()->steps;
  const auto begun = Clock::now();
  const auto first = ticks();
  auto before = first;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    checkpoint();
    const int branch = bound.branch_of(steps[s]);  // the condition's memory may be another's afterwards
    bound.run_step(s);
    const auto now = ticks();
    times_.push_back({&steps[s], static_cast<double>(now - before), 0, branch});
    before = now;
    after(now);
  }
  const std::chrono::duration<double, std::micro> whole = Clock::now() - begun;
  if (before > first) tick_ = whole.count() / static_cast<double>(before - first);
  for (auto& t : times_) t.microseconds *= tick_;
}

void StepTimes::count() {
  if (counts_.empty())
    for (const auto& t : times_) counts_.push_back({t.step});
  for (std::size_t s = 0; s < times_.size(); ++s) {
    auto& c = counts_[s];
    const double us = times_[s].microseconds;
    c.last = us;
    c.sum += us;
    c.least = c.runs == 0 ? us : std::min(c.least, us);
    c.cpu += times_[s].cpu_microseconds;
    ++c.runs;
    ++c.branches[static_cast<std::size_t>(times_[s].branch)];
  }
}

}  // namespace lamina
