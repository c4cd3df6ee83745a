#pragma once
/// What the two forms of `lamina benchmark` share.
#include <functional>
#include <optional>

#include "lamina/benchmark.h"
#include "tool/inputs.h"
#include "tool/steps.h"

namespace lamina::tool {

struct BenchmarkCommand {
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
Options settings_of(BenchmarkCommand& o, const Given& given, const Steps& steps);

/// A model ready to be measured.
struct Subject {
  std::vector<std::string> notes;
  std::vector<InputGroup> groups;
  std::vector<Port> outputs;
  std::optional<CompiledModel> compiled;
  std::optional<Benchmark> benchmark;
  double before_mb = 0, load_ms = 0, first_ms = 0;
  double read_ms = 0, compile_ms = 0;
  /// The first inference of each group, timed for the first.
  void warm_up() { first_ms = benchmark->warm_up(); }
};
/// Reads and compiles the model: steps 4 to 7. Throws UsageError if sizes of inputs are missing, or if the
/// model does not allow --batch.
Subject load(const BenchmarkCommand& o, Options options, const Steps& steps);

/// Percentile as benchmark_app computes it: the value at ceil(n * percent / 100).
double at_percent(const std::vector<double>& sorted, int percent);

using Counters = std::vector<LayerCounter>;

/// The warm protocol: one line of JSON for each line read.
int interactive(const BenchmarkCommand& o, const Options& options);

}  // namespace lamina::tool
