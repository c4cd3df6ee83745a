/// The measurement of `lamina benchmark`: one request after another, or several in flight.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <stop_token>
#include <thread>

#include "base/condition_variable.h"
#include "tool/benchmark.h"
#include "tool/interrupt.h"

namespace lamina::tool {
namespace {

using Clock = std::chrono::steady_clock;

double elapsed_ms(Clock::time_point a, Clock::time_point b) {
  return std::chrono::duration<double, std::milli>(b - a).count();
}

/// One of the requests.
struct InFlight {
  Request request;
  std::vector<Tensor> own = {};              ///< inputs, where they are copied
  std::vector<std::vector<double>> ms = {};  ///< by group
  std::size_t group = 0;
  bool filled = false;
  Profile profile = {};
  RequestTrace trace = RequestTrace(0);
  std::exception_ptr error = {};
  Clock::time_point began = {};

  void fill(const Subject& l, std::size_t n, bool copies) {
    const auto next = n % l.groups.size();
    if (filled && next == group && !copies) return;
    group = next;
    filled = true;
    const auto& inputs = l.groups[group].inputs;
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
  RateLimiter(const Subject& l, const LoadPattern& pattern) : until_(pattern.until) {
    double frames = 0;
    for (const auto& g : l.groups) frames += static_cast<double>(g.batch);
    if (pattern.most_frames > 0)
      between_ = frames / static_cast<double>(l.groups.size()) / pattern.most_frames;
  }
  void begin() { began_ = Clock::now(); }
  bool limited() const { return between_ > 0; }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }
  void fail() { failed_ = true; }
  bool failed() const { return failed_; }
  /// The number of the next inference, counted from 0; nothing when it is over. From any thread.
  std::optional<std::size_t> next() {
    if (interrupted() || failed_) return {};
    const auto n = started_.fetch_add(1);
    if (n < until_.runs || seconds() < until_.seconds) return n;
    return {};
  }
  /// Sleeps until the next one may begin, or all is over.
  void sleep() const {
    if (!limited()) return;
    const auto n = started_.load();
    auto due = static_cast<double>(n) * between_;
    if (n >= until_.runs) due = std::min(due, until_.seconds);
    constexpr double kSlice = 0.05;  // seconds; an interrupt is seen between
    for (auto left = due - seconds(); left > 0 && !interrupted() && !failed_; left = due - seconds())
      std::this_thread::sleep_for(std::chrono::duration<double>(std::min(left, kSlice)));
  }

 private:
  const Until until_;
  double between_ = 0;
  Clock::time_point began_;
  std::atomic<std::size_t> started_{0};
  std::atomic<bool> failed_{false};
};

/// A measurement with all its requests.
class Measurement {
 public:
  Measurement(const Subject& l, const LoadPattern& pattern, const Records& records)
      : l_(l), pattern_(pattern), profiled_(records.profile), traced_(records.traces), limiter_(l, pattern) {
    for (std::size_t i = 0; i < pattern.requests; ++i) {
      requests_.push_back(std::make_unique<InFlight>(InFlight{l.compiled->create_request()}));
      requests_.back()->ms.resize(l.groups.size());
      requests_.back()->trace = RequestTrace(kMostTracedSteps / pattern.requests);
      requests_.back()->fill(l, i, false);
      if (pattern.warm && !interrupted()) requests_.back()->request.run();
      requests_.back()->filled = !pattern.copies;
      if (pattern.copies) requests_.back()->own.clear();
    }
  }

  double one_by_one() {
    auto& f = *requests_[0];
    limiter_.begin();
    const std::jthread watch = watcher();
    for (;;) {
      limiter_.sleep();
      const auto n = limiter_.next();
      if (!n) break;
      f.fill(l_, *n, pattern_.copies);
      f.began = Clock::now();
      if (!ran(f)) break;
      took(f, Clock::now());
    }
    return limiter_.seconds();
  }

  /// Each start() has a callback, in which the next one follows; with a limit this thread starts them.
  double at_once() {
    limiter_.begin();
    const std::jthread watch = watcher();
    for (auto& f : requests_)
      f->request.set_callback([this, &f = *f](std::exception_ptr error) { finished(f, error); });
    if (limiter_.limited())
      start_at_the_rate();
    else
      for (auto& f : requests_)
        if (!start(*f)) break;
    for (auto& f : requests_) await(*f);
    return limiter_.seconds();
  }

  void collect(Latencies& out, const Records& records) {
    out.groups.resize(l_.groups.size());
    for (auto& f : requests_) {
      if (f->error) std::rethrow_exception(f->error);
      std::size_t runs = 0;
      for (std::size_t g = 0; g < f->ms.size(); ++g) {
        out.groups[g].insert(out.groups[g].end(), f->ms[g].begin(), f->ms[g].end());
        out.ms.insert(out.ms.end(), f->ms[g].begin(), f->ms[g].end());
        runs += f->ms[g].size();
      }
      if (records.profile) records.profile->add(f->profile);
      if (records.counters && (runs > 0 || pattern_.warm)) records.counters->push_back(f->request.counters());
      if (records.traces) records.traces->push_back(std::move(f->trace));
    }
    std::sort(out.ms.begin(), out.ms.end());
    for (auto& g : out.groups) std::sort(g.begin(), g.end());
  }

  /// Measures one inference if the measurement was interrupted before the first had ended.
  double only_one() {
    auto& f = *requests_[0];
    const std::jthread watch = watcher();
    f.request.set_callback({});
    f.fill(l_, 0, false);
    f.began = Clock::now();
    f.request.run();
    took(f, Clock::now());
    return 1e-3 * f.ms[0].back();
  }

 private:
  /// When the measurement is interrupted, running inferences get a moment to end; then they are canceled.
  std::jthread watcher() {
    return std::jthread([this](const std::stop_token& over) {
      using namespace std::chrono_literals;
      while (!interrupted() && !over.stop_requested()) std::this_thread::sleep_for(10ms);
      for (const auto late = Clock::now() + 300ms; !over.stop_requested(); std::this_thread::sleep_for(10ms))
        if (Clock::now() >= late)
          for (auto& f : requests_) f->request.cancel();
    });
  }
  /// False: it was interrupted in the midst.
  static bool ran(InFlight& f) try {
    f.request.run();
    return true;
  } catch (const Error& e) {
    if (e.code() != ErrorCode::canceled || !interrupted()) throw;
    return false;
  }
  static void await(InFlight& f) try { f.request.wait(); } catch (const Error& e) {
    if (e.code() != ErrorCode::canceled || !interrupted()) throw;
  }

  bool start(InFlight& f) {
    const auto n = limiter_.next();
    if (!n) return false;
    f.fill(l_, *n, pattern_.copies);
    f.began = Clock::now();
    f.request.start();
    return true;
  }

  void took(InFlight& f, Clock::time_point now) {
    f.ms[f.group].push_back(elapsed_ms(f.began, now));
    if (profiled_) f.profile.add(f.request, 1e3 * f.ms[f.group].back());
    if (traced_) f.trace.add(f.request, f.began, now);
  }

  void finished(InFlight& f, std::exception_ptr error) {
    const auto now = Clock::now();
    if (error) {
      if (!interrupted()) f.error = error;
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

  const Subject& l_;
  const LoadPattern& pattern_;
  const bool profiled_, traced_;
  RateLimiter limiter_;
  std::mutex mutex_;
  ConditionVariable became_idle_;
  std::deque<InFlight*> idle_;
  std::vector<std::unique_ptr<InFlight>> requests_;  // destroyed first: their callbacks use the rest
};

}  // namespace

Latencies measure(const Subject& l, const LoadPattern& pattern, const Records& records) {
  Measurement measurement(l, pattern, records);
  Latencies out;
  out.seconds = pattern.sync ? measurement.one_by_one() : measurement.at_once();
  Latencies probe;
  measurement.collect(probe, {});
  if (probe.ms.empty()) out.seconds = measurement.only_one();
  measurement.collect(out, records);
  // Taking the profile costs time between the runs that is not theirs.
  if (records.profile && pattern.sync && pattern.most_frames == 0 && !pattern.copies)
    out.seconds = 1e-3 * std::accumulate(out.ms.begin(), out.ms.end(), 0.0);
  // With a rate, the interval after the last inference counts as time, too.
  if (pattern.most_frames > 0) {
    double frames = 0;
    for (std::size_t g = 0; g < l.groups.size(); ++g)
      frames += static_cast<double>(l.groups[g].batch) * static_cast<double>(out.groups[g].size());
    out.seconds = std::max(out.seconds, frames / pattern.most_frames);
  }
  return out;
}

double percentile_of(const std::vector<double>& sorted, double p) {
  if (sorted.empty()) return 0;
  const auto at = p * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const auto high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (at - static_cast<double>(low));
}

double mean_of(const std::vector<double>& values) {
  return values.empty()
             ? 0
             : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double at_percent(const std::vector<double>& sorted, int percent) {
  if (sorted.empty()) return 0;
  const auto n = sorted.size(), at = (n * static_cast<std::size_t>(percent) + 99) / 100;
  return sorted[std::clamp<std::size_t>(at, 1, n) - 1];
}

}  // namespace lamina::tool
