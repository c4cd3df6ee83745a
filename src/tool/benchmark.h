#pragma once
/// What the two forms of `lamina benchmark` share.
#include <map>
#include <memory>

#include "tool/inputs.h"
#include "tool/layers.h"

namespace lamina::tool {

struct BenchmarkOptions {
  Common common;
  InputOptions inputs;
  std::string hint = "latency", runtime_graph, device;
  double seconds = 3;
  long iterations = 0;
  int requests = 0, streams = 0, batch = 0;
  int top = 0;  ///< layers shown by pc; 0: all
  bool pc = false, interactive = false;
  std::map<std::string, std::string> ignored;  ///< accepted for the sake of scripts
};

/// Where the milliseconds of loading and of the first inference went; they add up to both.
struct LoadPhases {
  double read = 0, optimize = 0, plan = 0, pack = 0, first_inference = 0;
};

/// A model ready to be measured.
struct Subject {
  std::vector<std::string> notes;
  std::vector<Tensor> inputs;
  std::vector<Port> outputs;
  std::unique_ptr<CompiledModel> compiled;
  std::unique_ptr<Request> request;
  double before_mb = 0, load_ms = 0, first_ms = 0;
  LoadPhases phases;
};
Subject load(const BenchmarkOptions& o, Options options);

/// The tensor with its first dimension repeated or cut to `batch`.
Tensor with_batch(const Tensor& t, int batch);

struct Latencies {
  std::vector<double> ms;  ///< sorted
  double seconds = 0;
  double percentile(double p) const;
  double mean() const;
};
/// One inference unmeasured, then at least one and until `seconds` have passed, or exactly `at_most` when not
/// 0. The profile, when given, gets every run.
Latencies measure(Request& request, double seconds, long at_most = 0, Profile* profile = nullptr);
/// Inferences per second with that many requests at once. The profile, when given, gets every run.
double throughput(const CompiledModel& compiled, const std::vector<Tensor>& inputs, int requests,
                  double seconds, Profile* profile = nullptr);

/// The warm protocol: one line of JSON for each line read.
int interactive(const BenchmarkOptions& o, const Options& options, int streams);

}  // namespace lamina::tool
