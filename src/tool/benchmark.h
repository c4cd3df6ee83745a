#pragma once
/// What the two forms of `lamina benchmark` share.
#include <memory>

#include "api/inside.h"
#include "tool/inputs.h"
#include "tool/layers.h"

namespace lamina::tool {

struct BenchmarkOptions {
  Common common;
  InputOptions inputs;
  std::string hint, api, runtime_graph;
  double seconds = 3;
  long iterations = 0;
  int requests = 0, streams = -1;  ///< 0: not said; -1: not said
  int top = 0;  ///< layers shown by pc; 0: all
  bool pc = false, interactive = false;
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
  std::int64_t batch = 1;  ///< frames of one inference
  double before_mb = 0, load_ms = 0, first_ms = 0;
  LoadPhases phases;
  Precisions precisions() const { return precisions_of(Inside::of(*compiled), *request); }
};
/// Throws UsageError when sizes of inputs, or what --batch wants, cannot be had.
Subject load(const BenchmarkOptions& o, Options options);

struct Latencies {
  std::vector<double> ms;  ///< sorted; at least one
  double seconds = 0;      ///< that they took together
  double percentile(double p) const;
  double mean() const;
  double per_second() const { return static_cast<double>(ms.size()) / seconds; }
};

/// How long to measure: until so many runs are done and so many seconds have passed; an interrupt
/// (tool/interrupt.h) ends it earlier.
struct Until {
  double seconds = 0;
  std::size_t runs = 1;
};
/// One inference unmeasured, then one after another. The profile, when given, gets every run.
Latencies measure(Request& request, const Until& until, Profile* profile = nullptr);
/// So many requests in flight, each started again when it has ended; to wait for a stream counts as theirs. The
/// profile, when given, gets every run.
Latencies measure_at_once(const CompiledModel& compiled, const std::vector<Tensor>& inputs,
                          std::size_t requests, const Until& until, Profile* profile = nullptr);

/// The warm protocol: one line of JSON for each line read.
int interactive(const BenchmarkOptions& o, const Options& options);

}  // namespace lamina::tool
