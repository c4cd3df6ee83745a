#include "measure/measurement.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <numeric>
#include <optional>
#include <thread>

#include "base/error.h"

namespace lamina {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kMoment = 300ms;        // that a running inference has to end
constexpr auto kCanceledAgain = 10ms;  // what was between two inferences
constexpr auto kTellsAgain = 100ms;    // progress

double elapsed_ms(Clock::time_point a, Clock::time_point b) {
  return std::chrono::duration<double, std::milli>(b - a).count();
}

/// One of the requests.
struct InFlight {
  explicit InFlight(Request one) : request(std::move(one)) {}

  std::vector<Tensor> own = {};              ///< inputs, where they are copied
  std::vector<std::vector<double>> ms = {};  ///< by group
  std::size_t group = 0;
  bool filled = false;
  Profile profile = {};
  RequestTrace trace = RequestTrace(0);
  std::exception_ptr error = {};
  Clock::time_point began = {};
  Request request;  ///< destroyed first: it ends its inference, whose callback uses the rest

  void fill(const std::vector<InputGroup>& groups, std::size_t n, bool copies) {
    const auto next = n % groups.size();
    if (filled && next == group && !copies) return;
    group = next;
    filled = true;
    const auto& inputs = groups[group].inputs;
    own.resize(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (copies && own[i].valid() && own[i].shape() == inputs[i].shape()) {
        if (inputs[i].bytes()) std::memcpy(own[i].raw(), inputs[i].raw(), inputs[i].bytes());
        continue;
      }
      own[i] = copies ? inputs[i].clone() : inputs[i];
      request.set_input(i, own[i]);
    }
  }
};

/// Says when inferences may begin, and whether another one shall begin.
class RateLimiter {
 public:
  RateLimiter(const std::vector<InputGroup>& groups, const LoadPattern& pattern, const std::stop_token& stop)
      : seconds_(pattern.seconds), runs_(pattern.runs), stop_(stop) {
    double frames = 0;
    for (const auto& g : groups) frames += static_cast<double>(g.batch);
    if (pattern.most_frames > 0) between_ = frames / static_cast<double>(groups.size()) / pattern.most_frames;
  }
  void begin() { began_ = Clock::now(); }
  Clock::time_point began() const { return began_; }
  bool limited() const { return between_ > 0; }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }
  void fail() { failed_ = true; }
  bool failed() const { return failed_; }
  /// How much of the measurement is over, from 0 to 1.
  double done() const {
    const auto of_runs = static_cast<double>(started_.load()) / static_cast<double>(runs_);
    return std::min({seconds_ > 0 ? seconds() / seconds_ : 1, of_runs, 1.0});
  }
  /// The number of the next inference, counted from 0; nothing when it is over. From any thread.
  std::optional<std::size_t> next() {
    if (stop_.stop_requested() || failed_) return {};
    const auto n = started_.fetch_add(1);
    if (n < runs_ || seconds() < seconds_) return n;
    return {};
  }
  /// Sleeps until the next one may begin, or all is over.
  void sleep() const {
    if (!limited()) return;
    const auto n = started_.load();
    auto due = static_cast<double>(n) * between_;
    if (n >= runs_) due = std::min(due, seconds_);
    constexpr double kSlice = 0.05;  // seconds; a stop is seen between
    for (auto left = due - seconds(); left > 0 && !stop_.stop_requested() && !failed_; left = due - seconds())
      std::this_thread::sleep_for(std::chrono::duration<double>(std::min(left, kSlice)));
  }

 private:
  const double seconds_;
  const std::size_t runs_;
  const std::stop_token& stop_;
  double between_ = 0;
  Clock::time_point began_;
  std::atomic<std::size_t> started_{0};
  std::atomic<bool> failed_{false};
};

/// A measurement with all its requests.
class Measurement {
 public:
  Measurement(const CompiledModel& model, const std::vector<InputGroup>& groups, const LoadPattern& pattern,
              const Records& records, const ProgressCallback& progress, const std::stop_token& stop)
      : groups_(groups),
        pattern_(pattern),
        records_(records),
        progress_(progress),
        stop_(stop),
        limiter_(groups, pattern, stop) {
    for (std::size_t i = 0; i < pattern.requests; ++i) {
      requests_.push_back(std::make_unique<InFlight>(model.create_request()));
      auto& f = *requests_.back();
      if (records.any()) f.request.set_profile(true);
      f.ms.resize(groups.size());
      f.trace = RequestTrace(kMostTracedSteps / pattern.requests);
    }
    const StopWatch watch(stop, [this] { cancel(); });
    for (std::size_t i = 0; i < pattern.requests; ++i) {
      auto& f = *requests_[i];
      f.fill(groups, i, false);
      if (pattern.warm && !stop.stop_requested()) (void)ran(f);
      f.filled = !pattern.copies;
      if (pattern.copies) f.own.clear();
    }
  }

  double one_by_one() {
    auto& f = *requests_[0];
    limiter_.begin();
    const StopWatch watch(stop_, [this] { cancel(); });
    for (;;) {
      tell();
      limiter_.sleep();
      const auto n = limiter_.next();
      if (!n) break;
      f.fill(groups_, *n, pattern_.copies);
      f.began = Clock::now();
      if (!ran(f)) break;
      took(f, Clock::now());
    }
    return limiter_.seconds();
  }

  /// Each start() has a callback, in which the next one follows; with a limit this thread starts them.
  double at_once() {
    limiter_.begin();
    const StopWatch watch(stop_, [this] { cancel(); });
    for (auto& f : requests_)
      f->request.set_callback([this, &f = *f](std::exception_ptr error) { finished(f, error); });
    try {
      if (limiter_.limited())
        start_at_the_rate();
      else
        for (auto& f : requests_)
          if (!start(*f)) break;
      for (auto& f : requests_) await(*f);
    } catch (...) {
      limiter_.fail();  // callbacks start no others
      cancel();
      for (auto& f : requests_) end_quietly(*f);
      throw;
    }
    return limiter_.seconds();
  }

  bool measured_any() const {
    return std::any_of(requests_.begin(), requests_.end(), [](const auto& f) {
      return f->error || std::any_of(f->ms.begin(), f->ms.end(), [](const auto& ms) { return !ms.empty(); });
    });
  }

  void collect(Measured& out) {
    out.began = limiter_.began();
    out.groups.resize(groups_.size());
    for (auto& f : requests_) {
      if (f->error) std::rethrow_exception(f->error);
      std::size_t runs = 0;
      for (std::size_t g = 0; g < f->ms.size(); ++g) {
        out.groups[g].insert(out.groups[g].end(), f->ms[g].begin(), f->ms[g].end());
        out.ms.insert(out.ms.end(), f->ms[g].begin(), f->ms[g].end());
        runs += f->ms[g].size();
      }
      if (records_.profile) out.profile.add(f->profile);
      if (records_.counters && (runs > 0 || pattern_.warm)) out.counters.push_back(f->request.counters());
      if (records_.traces) out.traces.push_back(std::move(f->trace));
    }
    std::sort(out.ms.begin(), out.ms.end());
    for (auto& g : out.groups) std::sort(g.begin(), g.end());
  }

  /// Measures one inference if the measurement was stopped before the first had ended.
  double only_one() {
    auto& f = *requests_[0];
    const StopWatch watch(stop_, [this] { cancel(); });
    f.request.set_callback({});
    f.fill(groups_, 0, false);
    f.began = Clock::now();
    f.request.run();
    took(f, Clock::now());
    return 1e-3 * f.ms[0].back();
  }

 private:
  void cancel() {
    for (auto& f : requests_) f->request.cancel();
  }
  /// Says how much is done, if it has not done so for a while.
  void tell() {
    if (!progress_ || Clock::now() < tells_next_) return;
    progress_("measuring", limiter_.done());
    tells_next_ = Clock::now() + kTellsAgain;
  }
  /// What is thrown here is no fault if a stop was requested.
  template <class F>
  bool unless_stopped(F&& work) const {
    try {
      work();
      return true;
    } catch (const Error& e) {
      if (e.code() != ErrorCode::canceled || !stop_.stop_requested()) throw;
      return false;
    }
  }
  /// False: it was stopped in the midst.
  bool ran(InFlight& f) const {
    return unless_stopped([&] { f.request.run(); });
  }
  static void end_quietly(InFlight& f) {
    try {
      f.request.wait();
    } catch (...) {  // what went wrong first is thrown
    }
  }
  void await(InFlight& f) {
    unless_stopped([&] {
      if (!progress_) return f.request.wait();
      while (!f.request.wait_for(kTellsAgain)) tell();
    });
  }

  bool start(InFlight& f) {
    const auto n = limiter_.next();
    if (!n) return false;
    f.fill(groups_, *n, pattern_.copies);
    f.began = Clock::now();
    f.request.start();
    return true;
  }

  void took(InFlight& f, Clock::time_point now) {
    f.ms[f.group].push_back(elapsed_ms(f.began, now));
    if (records_.profile) f.profile.add(f.request, 1e3 * f.ms[f.group].back());
    if (records_.traces) f.trace.add(f.request, f.began, now);
  }

  void finished(InFlight& f, std::exception_ptr error) {
    const auto now = Clock::now();
    if (error) {
      if (!stop_.stop_requested()) f.error = error;
      limiter_.fail();
    } else {
      took(f, now);
    }
    if (limiter_.limited()) {
      const std::lock_guard lock(mutex_);
      idle_.push_back(&f);
      became_idle_.notify_one();
    } else if (!error) {
      start(f);
    }
  }

  void start_at_the_rate() {
    for (auto& f : requests_) idle_.push_back(f.get());
    for (;;) {
      tell();
      limiter_.sleep();
      std::unique_lock lock(mutex_);
      became_idle_.wait(lock, [&] { return !idle_.empty(); });
      auto& f = *idle_.front();
      idle_.pop_front();
      lock.unlock();
      // The callback of the request may not have returned yet.
      if (!limiter_.failed()) await(f);
      if (!start(f)) return;
    }
  }

  const std::vector<InputGroup>& groups_;
  const LoadPattern& pattern_;
  const Records& records_;
  const ProgressCallback& progress_;
  const std::stop_token& stop_;
  Clock::time_point tells_next_;
  RateLimiter limiter_;
  std::mutex mutex_;
  ConditionVariable became_idle_;
  std::deque<InFlight*> idle_;
  std::vector<std::unique_ptr<InFlight>> requests_;  // destroyed first: their callbacks use the rest
};

}  // namespace

StopWatch::StopWatch(const std::stop_token& stop, std::function<void()> cancel) {
  if (stop.stop_possible())
    thread_ = OwnThread("lamina-stop", [this, stop, cancel = std::move(cancel)] { watch(stop, cancel); });
}

StopWatch::~StopWatch() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void StopWatch::watch(const std::stop_token& stop, const std::function<void()>& cancel) {
  const std::stop_callback wake(stop, [this] {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return over_ || stop.stop_requested(); });
  changed_.wait_for(lock, kMoment, [&] { return over_; });
  for (; !over_; changed_.wait_for(lock, kCanceledAgain)) cancel();
}

Measured measure(const CompiledModel& model, const std::vector<InputGroup>& groups,
                 const LoadPattern& pattern, const Records& records, const ProgressCallback& progress,
                 const std::stop_token& stop) {
  Measurement measurement(model, groups, pattern, records, progress, stop);
  Measured out;
  out.seconds = pattern.sync ? measurement.one_by_one() : measurement.at_once();
  if (!measurement.measured_any()) out.seconds = measurement.only_one();
  measurement.collect(out);
  // Taking the profile costs time between the runs that is not theirs.
  if (records.profile && pattern.sync && pattern.most_frames == 0 && !pattern.copies)
    out.seconds = 1e-3 * std::accumulate(out.ms.begin(), out.ms.end(), 0.0);
  // With a rate, the interval after the last inference counts as time, too.
  if (pattern.most_frames > 0) {
    double frames = 0;
    for (std::size_t g = 0; g < groups.size(); ++g)
      frames += static_cast<double>(groups[g].batch) * static_cast<double>(out.groups[g].size());
    out.seconds = std::max(out.seconds, frames / pattern.most_frames);
  }
  return out;
}

}  // namespace lamina
