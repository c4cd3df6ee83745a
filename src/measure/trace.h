#pragma once
/// What ran when: `lamina benchmark --trace FILE`, in the JSON form that Perfetto and chrome://tracing open.
#include <chrono>
#include <string>
#include <vector>

#include "api/inside.h"
#include "explain/layers.h"

namespace lamina {

/// The runs of one request. Not thread-safe.
class RequestTrace {
 public:
  /// Keeps at most so many steps; runs that have no room any more are counted only.
  explicit RequestTrace(std::size_t most_steps) : most_steps_(most_steps) {}

  using Time = std::chrono::steady_clock::time_point;
  /// Adds the last run of the request, from its call at `began` to its end at `ended`.
  void add(const Request& request, Time began, Time ended);

 private:
  friend std::string trace_text(const std::string& model, const std::vector<RequestTrace>& requests,
                                RequestTrace::Time begin);
  struct Run {
    Time began, ended;
    std::vector<StepTime> steps;
  };
  std::size_t most_steps_, steps_ = 0, left_out_ = 0;
  std::vector<Run> runs_;
  std::vector<std::shared_ptr<const Plan>> plans_;  // which the steps are of
};

/// Steps of all requests that a trace holds at most: a file of some 30 MB.
inline constexpr std::size_t kMostTracedSteps = 100000;

/// A JSON document with the requests in their order. A bar for each inference in the row of its request, and
/// for each step in the row of the thread that ran it. Times count from `begin`.
std::string trace_text(const std::string& model, const std::vector<RequestTrace>& requests,
                       RequestTrace::Time begin);

}  // namespace lamina
