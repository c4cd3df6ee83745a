#pragma once
/// What the two forms of `lamina benchmark` share.
#include <cstdint>
#include <functional>
#include <memory>

#include "api/inside.h"
#include "explain/layers.h"
#include "measure/trace.h"
#include "tool/inputs.h"
#include "tool/steps.h"

namespace lamina::tool {

struct BenchmarkOptions {
  Common common;
  InputOptions inputs;
  std::string hint, api, runtime_graph, trace, streams;
  double seconds = 3;
  long iterations = 0;
  bool timed = false, counted = false;  ///< seconds, iterations: hold
  int requests = 0;                     ///< 0: not said
  int top = 0;                          ///< layers shown by pc; 0: all
  bool pc = false, interactive = false;

  bool app = false;                  ///< benchmark_app's defaults and output
  std::vector<std::string> written;  ///< options as they were spelt: "--iterations -niter=10"
  std::vector<std::string> idle;     ///< sentences about options that do nothing here
  std::vector<std::string> data_shape, types, image_info, made_up, mean_values, scale_values;
  std::string report_type, report_folder = ".", pcsort, load_config, dump_config, inference_only;
  bool json_stats = false, no_warmup = false, pcseq = false, from_file = false;
  double most_frames = 0;  ///< per second; 0: no limit
  int percentile = 50;

  /// An option or setting as it was typed; where it was not, as the form of the command line calls it: `own`
  /// is lamina's name, `app` benchmark_app's.
  std::string typed(const std::string& own, const std::string& app) const;
  bool only_compiles() const { return counted && iterations == 0; }
  bool wants_reports() const { return !report_type.empty() || !pcsort.empty(); }
  bool wants_counters() const {
    return !pcsort.empty() || (!report_type.empty() && report_type != "no_counters") || (app && pc);
  }
};

/// Whether the command line has the option of that name.
using Given = std::function<bool(const std::string&)>;
/// The settings: those of --load-config, then those of the command line. Completes `o` by defaults that
/// depend on them, benchmark_app's among others.
Options settings_of(BenchmarkOptions& o, const Given& given, const Steps& steps);

/// Where the milliseconds of loading and of the first inference went; they add up to both.
struct LoadPhases {
  double read = 0, optimize = 0, plan = 0, pack = 0, first_inference = 0;
};

/// A group of inputs for one inference; several groups run in turn.
struct InputGroup {
  std::vector<Tensor> inputs;
  std::int64_t batch = 1;  ///< frames of one inference
  std::string name;        ///< "x: [1,3,64,64] y: [1]"
};

/// A model ready to be measured.
struct Subject {
  std::vector<std::string> notes;
  std::vector<InputGroup> groups;
  std::vector<Port> outputs;
  std::unique_ptr<CompiledModel> compiled;
  std::unique_ptr<Request> request;
  double before_mb = 0, load_ms = 0, first_ms = 0;
  double read_ms = 0, compile_ms = 0;
  LoadPhases phases;
  Precisions precisions() const { return precisions_of(Inside::of(*compiled), *request); }
};
/// Reads and compiles the model: steps 4 to 7. Throws UsageError if sizes of inputs are missing, or if the
/// model does not allow --batch.
Subject load(const BenchmarkOptions& o, Options options, const Steps& steps);
/// The first inference of each group, timed for the first.
void warm_up(Subject& l);

struct Latencies {
  std::vector<double> ms;                   ///< sorted; at least one
  std::vector<std::vector<double>> groups;  ///< latencies by group, sorted
  double seconds = 0;                       ///< time of all of them together
  double per_second() const { return static_cast<double>(ms.size()) / seconds; }
};
/// Percentile of sorted values, interpolated between neighbours; `p`: 0 to 1.
double percentile_of(const std::vector<double>& sorted, double p);
/// Percentile as benchmark_app computes it: the value at ceil(n * percent / 100).
double at_percent(const std::vector<double>& sorted, int percent);
double mean_of(const std::vector<double>& values);

/// How long to measure: until so many runs are done and so many seconds have passed; an interrupt
/// (tool/interrupt.h) ends it earlier.
struct Until {
  double seconds = 0;
  std::size_t runs = 1;
};

/// The method of a measurement.
struct LoadPattern {
  Until until;
  std::size_t requests = 1;
  bool sync = true;        ///< one request, run() after run()
  bool copies = false;     ///< inputs are copied in for each inference
  bool warm = true;        ///< each request runs once before
  double most_frames = 0;  ///< per second; 0: no limit
};

using Counters = std::vector<LayerCounter>;

/// Further records of each measured run; null: not wanted.
struct Records {
  Profile* profile = nullptr;
  std::vector<Counters>* counters = nullptr;    ///< a table per request that ran
  std::vector<RequestTrace>* traces = nullptr;  ///< one per request
};

/// Measures one inference after another, or so many requests in flight, each started again when it has ended.
/// Waiting for a stream counts as time of the inference.
Latencies measure(const Subject& l, const LoadPattern& pattern, const Records& records = {});

/// The warm protocol: one line of JSON for each line read.
int interactive(const BenchmarkOptions& o, const Options& options);

}  // namespace lamina::tool
