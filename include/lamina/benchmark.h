#pragma once
/// Measurements of a model: latency, throughput, loading, memory, and the time of each layer.
///
///     lamina::BenchmarkReport report = lamina::benchmark("resnet50.onnx");
///     double median = report.latencies.percentile(50);  // in milliseconds
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "lamina/export.h"
#include "lamina/model.h"
#include "lamina/options.h"
#include "lamina/progress.h"
#include "lamina/tensor.h"

namespace lamina {

/// The inputs of one inference. Several groups, which may have other shapes, run in turn.
struct InputGroup {
  /// In the model's order; none: seeded random values of the model's types and sizes.
  std::vector<Tensor> inputs = {};
  std::int64_t batch = 1;  ///< frames of one inference: throughput counts frames
  std::string name = {};   ///< in the report
};

/// automatic: as sync if one request is used, else as async. sync: one request, run() after run(). async:
/// each request is started again when it has ended, in its callback.
enum class BenchmarkApi : std::uint8_t { automatic, sync, async };

struct BenchmarkOptions {
  /// How long to measure; without a value 3, or as long as `iterations` take. Up to 86400.
  std::optional<double> seconds = {};
  /// How many inferences to measure; 0: as many as `seconds` allow. With both: until both are reached.
  std::size_t iterations = 0;
  BenchmarkApi api = BenchmarkApi::automatic;
  /// Requests that are in flight at the same time; 0: as many as keep all streams busy.
  std::size_t requests = 0;
  /// Copies the inputs into each request before each of its inferences, which counts as time of the
  /// inference.
  bool copy_inputs = false;
  /// Runs the first inference of each group, and one of each request, before the measurement.
  bool warm_up = true;
  double frames_per_second = 0;  ///< inferences are started at this rate at most; 0: no limit
  int percentile = 50;           ///< a further percentile of latencies for the document, 1 to 100

  bool layers = false;         ///< BenchmarkReport::layers
  bool counters = false;       ///< BenchmarkReport::counters
  bool trace = false;          ///< BenchmarkReport::trace
  bool runtime_graph = false;  ///< BenchmarkReport::runtime_graph

  /// Gets "measuring" and how much is done, several times a second, then "reporting", from the calling
  /// thread. An exception from it ends the work and is thrown.
  ProgressCallback progress = {};
  /// Ends the measurement early, with a report on what was measured until then: no further inference begins,
  /// those that run have 0.3 seconds to end, and are canceled then. If none has ended by then, one more is
  /// tried for 0.3 seconds. Where that fails, or during the first inferences: Error(canceled).
  std::stop_token stop = {};
};

/// What the caller knows of loading a model. Zeros: not known.
struct LoadTimes {
  double read_ms = 0;     ///< of reading the model
  double compile_ms = 0;  ///< of CompiledModel's constructor, and what else was done until inputs were set
  double before_mb = 0;   ///< MiB that the process had in memory before
};

/// Times of inferences, from the call or start() to the end, with the wait for a stream; sorted.
struct Latencies {
  std::vector<double> ms = {};

  double min() const { return ms.empty() ? 0 : ms.front(); }
  double max() const { return ms.empty() ? 0 : ms.back(); }
  double mean() const {
    double sum = 0;
    for (const double one : ms) sum += one;
    return ms.empty() ? 0 : sum / static_cast<double>(ms.size());
  }
  /// `percent`: 0 to 100; interpolated between neighbours.
  double percentile(double percent) const {
    if (ms.empty()) return 0;
    const double at = 0.01 * percent * static_cast<double>(ms.size() - 1);
    const auto low = static_cast<std::size_t>(at);
    const auto high = low + 1 < ms.size() ? low + 1 : low;
    return ms[low] + (ms[high] - ms[low]) * (at - static_cast<double>(low));
  }
};

/// What was measured of one group of inputs.
struct GroupLatencies {
  std::string name;
  std::int64_t batch = 1;
  Latencies latencies;
};

/// Where the milliseconds of loading and of the first inference went; they add up to both.
struct LoadPhases {
  double read = 0;      ///< reading the model
  double optimize = 0;  ///< rewriting its graph, and what no other phase counts
  double plan = 0;      ///< choosing kernels and laying out memory, for the first inference's shapes, too
  double pack = 0;      ///< packing weights
  double first_inference = 0;  ///< running
};

/// What is in memory, in MiB. model_file, code, libraries, packed_weights, tensors and rest add up to what
/// the process has in memory.
struct BenchmarkMemory {
  double now = 0;             ///< of the process
  double before = 0;          ///< of the process before the model was read; 0: not known
  double peak = 0;            ///< of the process, ever
  double packed_weights = 0;  ///< weights in the order of kernels
  double read_weights = 0;    ///< weights that kernels read from constants
  double tensors = 0;         ///< the memory between layers of a stream
  double tensors_sum = 0;     ///< the same, if no tensors shared memory
  double tensors_live = 0;    ///< tensors that are needed at the same time, at most
  double model_file = 0;      ///< of mapped files of the model
  double code = 0;            ///< generated machine code
  double libraries = 0;       ///< programs and libraries
  double rest = 0;
};

/// Work and rates of a part of the model, per inference.
struct MeasuredWork {
  double microseconds = 0;
  double flops = 0;
  double bytes = 0;  ///< read and written
  /// The least time that the machine's limits allow, as a share of `microseconds`; 0: not known.
  double limit = 0;
};

/// A step of the plan: a layer with all that was fused into it, or a reorder.
struct MeasuredLayer : MeasuredWork {
  std::string name, op, kernel;
  std::string layout;     ///< "channels_last", "plain -> channels_last"
  std::string precision;  ///< "f32", "u8 -> f32"
  double share = 0;       ///< of the time of an inference
  bool compute = false;   ///< `limit` is by arithmetic, else by memory
};

/// All layers with the same kernel.
struct MeasuredKernel : MeasuredWork {
  std::string kernel;
  std::size_t count = 0;
};

/// What the machine can do at most, measured.
struct MachineRates {
  int threads = 1;
  double flops = 0;  ///< f32 multiply-adds per second, times two
  /// Bytes read and written per second when so many bytes are touched again and again; ascending.
  std::vector<std::pair<double, double>> bandwidth;
};

struct MeasuredLayers {
  std::size_t runs = 0;                 ///< inferences of which times are means
  MeasuredWork whole;                   ///< an inference from call to return
  double overhead = 0;                  ///< microseconds of it between the layers
  std::vector<MeasuredLayer> layers;    ///< in the order of execution
  std::vector<MeasuredKernel> kernels;  ///< the longest time first
  MachineRates machine;
};

/// The results of a measurement.
struct BenchmarkReport {
  std::string model;           ///< its path
  std::string precision;       ///< that was asked for: "f32", "bf16", "model"; empty: nothing was
  std::string precision_used;  ///< "bf16" if any layer computes with it, else "f32"
  /// In which types the layers compute: how many layers by type, and why not in what was asked for.
  std::map<std::string, std::size_t> precision_layers;
  std::string precision_reason;
  std::string precision_text;  ///< both in words: "bf16: 52 of 57 layers; f32: 5"

  int streams = 0;  ///< 0: the callers' threads do the work
  int threads_per_stream = 1;
  std::size_t requests = 1;                   ///< in flight
  bool sync = true;                           ///< run() after run()
  std::vector<std::vector<int>> stream_cpus;  ///< processors of each stream
  std::string isa;                            ///< instruction set of kernels
  std::string processor;
  std::vector<Property> properties;

  Latencies latencies;                 ///< of all groups
  std::vector<GroupLatencies> groups;  ///< in their order
  double seconds = 0;                  ///< time of all inferences together
  bool interrupted = false;            ///< BenchmarkOptions::stop ended it

  /// Without LoadTimes: what the model counted itself, of compiling and of plans for shapes that it has met.
  double load_ms = 0;
  double first_inference_ms = 0;  ///< with planning for its shapes; 0: there was none
  LoadPhases load_phases;
  bool loaded_from_cache = false;
  BenchmarkMemory memory;

  int percentile = 50;                   ///< BenchmarkOptions::percentile
  std::optional<MeasuredLayers> layers;  ///< with the rates of the machine, whose measurement takes 0.1 s
  /// Of each request that ran: Request::counters().
  std::vector<std::vector<LayerCounter>> counters;
  /// When each inference and each of its steps ran: JSON, for Perfetto and chrome://tracing.
  std::string trace;
  /// The steps that ran, with kernels and times, as an OpenVINO runtime graph (XML), which Netron opens.
  std::string runtime_graph;

  int threads() const { return (streams > 1 ? streams : 1) * threads_per_stream; }
  double frames() const {
    double sum = 0;
    for (const auto& g : groups)
      sum += static_cast<double>(g.batch) * static_cast<double>(g.latencies.ms.size());
    return sum;
  }
  /// Frames per second of all requests together.
  double throughput() const { return seconds > 0 ? frames() / seconds : 0; }
  /// The document of `lamina benchmark --json`.
  LAMINA_API std::string json() const;
};

/// A model that is measured, several times if wanted. One thread at a time.
class Benchmark {
 public:
  /// Takes a compiled model, whose other requests may be used meanwhile. No groups: one of random
  /// values. Throws Error(bad_input) for inputs that do not fit, and for sizes
  /// that neither the model nor a group says.
  LAMINA_API explicit Benchmark(const CompiledModel& model, std::vector<InputGroup> groups = {},
                                const LoadTimes& load = {});
  LAMINA_API Benchmark(Benchmark&&) noexcept;
  LAMINA_API Benchmark& operator=(Benchmark&&) noexcept;
  LAMINA_API ~Benchmark();

  /// Runs the first inference of each group. Returns the milliseconds of the first, with planning for its
  /// shapes. Throws what Request::run() throws, and Error(canceled) when a stop is requested.
  LAMINA_API double warm_up(const std::stop_token& stop = {});
  /// Measures; without warm_up() before it the report has no first inference and no tensors in memory. Throws
  /// what Request::run() throws, Error(bad_option) for options that contradict each other or are out of
  /// range, Error(canceled).
  LAMINA_API BenchmarkReport measure(const BenchmarkOptions& options = {});

 private:
  class State;
  std::unique_ptr<State> state_;
};

/// Measures a compiled model. Inputs are in the model's order; none: seeded random values. Thread-safe.
/// Throws what Benchmark's functions throw.
LAMINA_API BenchmarkReport benchmark(const CompiledModel& model, const std::vector<Tensor>& inputs = {},
                                     const BenchmarkOptions& options = {});
/// Reads, compiles and measures a model, so that the report has the time and memory of loading.
/// BenchmarkOptions::stop stops reading and compiling, too, where `reading` and `compiling` have no stop of
/// their own, and its progress is that of compiling, too. Throws what Model, CompiledModel and Benchmark
/// throw.
LAMINA_API BenchmarkReport benchmark(const std::string& model_path, const std::vector<Tensor>& inputs = {},
                                     const Options& compiling = {}, const BenchmarkOptions& options = {},
                                     const ReadOptions& reading = {});

/// What is found, and what goes wrong, a sentence each.
using NoteCallback = std::function<void(const std::string& text)>;

/// The options with kernels chosen by measuring on these inputs, before what Options::force has, and with a
/// measured number of streams where that is left to throughput: `lamina benchmark --tune`. Takes some
/// seconds. Results are remembered for this model, machine and options in $XDG_CACHE_HOME/lamina/tuned
/// (~/.cache/lamina/tuned); a file there that cannot be read or written leads to a note only. `note` is
/// called from the calling thread; an exception from it ends the work and is thrown. Options::stop ends the
/// work with Error(canceled), Options::progress gets that of each compilation. Thread-safe. Throws what
/// CompiledModel and Request::run() throw.
LAMINA_API Options tuned(const Model& model, const Options& options, const std::vector<Tensor>& inputs,
                         const NoteCallback& note = {});

}  // namespace lamina
