#pragma once
/// One measurement: inferences one after another, or so many requests in flight, each started again when it
/// has ended.
#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <stop_token>
#include <vector>

#include "base/condition_variable.h"
#include "base/threads.h"
#include "explain/layers.h"
#include "lamina/benchmark.h"
#include "measure/trace.h"

namespace lamina {

/// Cancels requests when a stop is requested. Those that run have a moment to end before.
class StopWatch {
 public:
  /// `cancel` is called from another thread, again and again, since a request may be between two inferences.
  StopWatch(const std::stop_token& stop, std::function<void()> cancel);
  ~StopWatch();
  StopWatch(const StopWatch&) = delete;
  StopWatch& operator=(const StopWatch&) = delete;

 private:
  void watch(const std::stop_token& stop, const std::function<void()>& cancel);

  std::mutex mutex_;
  ConditionVariable changed_;
  bool over_ = false;
  OwnThread thread_;
};

/// The method of a measurement: until so many runs are done and so many seconds have passed.
struct LoadPattern {
  double seconds = 0;
  std::size_t runs = 1;
  std::size_t requests = 1;
  bool sync = true;        ///< one request, run() after run()
  bool copies = false;     ///< inputs are copied in for each inference
  bool warm = true;        ///< each request runs once before
  double most_frames = 0;  ///< per second; 0: no limit
};

/// Which further records of each inference are wanted.
struct Records {
  bool profile = false, counters = false, traces = false;
  bool any() const { return profile || counters || traces; }
};

struct Measured {
  std::vector<double> ms;                   ///< sorted; at least one
  std::vector<std::vector<double>> groups;  ///< by group, sorted
  double seconds = 0;                       ///< time of all of them together
  std::chrono::steady_clock::time_point began;
  Profile profile;
  std::vector<std::vector<LayerCounter>> counters;  ///< a table for each request that ran
  std::vector<RequestTrace> traces;                 ///< one for each request
};

/// Waiting for a stream counts as time of the inference. BenchmarkOptions says what `progress` and `stop` do.
Measured measure(const CompiledModel& model, const std::vector<InputGroup>& groups,
                 const LoadPattern& pattern, const Records& records, const ProgressCallback& progress,
                 const std::stop_token& stop);

}  // namespace lamina
