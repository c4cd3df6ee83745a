#pragma once
/// How a model is compiled and run.
#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "lamina/export.h"
#include "lamina/limits.h"
#include "lamina/log.h"
#include "lamina/progress.h"

namespace lamina {

/// model: the model's own types, quantised layers in integers; f16 and bf16 tensors are computed in f32, and
/// the log says so. f32: floats in f32 and quantise steps as they stand, no layer in integers. bf16:
/// convolutions, matrix products and what lies between them in bf16 with f32 sums, where that gains; f32
/// where the processor, or max_isa, has no bf16 instructions: the log says which of both. f16: f32, and the
/// log says so.
enum class Precision { model, f32, bf16, f16 };

/// PERFORMANCE asks for bf16 where the processor has it, ACCURACY for the model's precision.
enum class ExecutionMode { none, performance, accuracy };

/// What a program wants: answers soon, or many of them.
enum class PerformanceHint { none, latency, throughput, cumulative_throughput };

/// What each thread of lamina's own is bound to. The callers' threads never are.
enum class Binding { processors, numa_nodes, none };

enum class HyperThreading { automatic, on, off };
enum class CoreType { any, performance, efficient };

/// How many requests run at once.
class Streams {
 public:
  enum class Kind { number, numa, automatic };
  static constexpr int kMost = 1024;
  constexpr Streams(int number) : number_(number) {}  // NOLINT: so that options.streams = 2
  /// One per NUMA node; the fewest that improve throughput.
  static constexpr Streams numa() { return Streams(Kind::numa); }
  static constexpr Streams automatic() { return Streams(Kind::automatic); }
  constexpr Kind kind() const { return kind_; }
  constexpr int number() const { return number_; }  ///< 0: the callers' threads do the work
  friend constexpr bool operator==(const Streams&, const Streams&) = default;

 private:
  constexpr explicit Streams(Kind kind) : kind_(kind) {}
  Kind kind_ = Kind::number;
  int number_ = 1;
};

/// speed: packed weights too, which are mapped. size: they are packed anew, of the model file where cache_dir
/// has the model.
enum class CacheMode { speed, size };

/// docs/configuration.md describes the keys that set these, and what comes of them.
struct Options {
  /// Threads of all streams together, each stream's own included, at most 1024; 0: as many as the affinity
  /// mask, the container's limits and the oneTBB arena that compiles allow. A limit set by
  /// tbb::global_control holds, too.
  int threads = 0;
  /// Most requests that run at once; without a number as the hint says.
  std::optional<Streams> streams = {};
  PerformanceHint hint = PerformanceHint::none;
  std::size_t hint_requests = 0;  ///< streams that the hint makes, at most; 0: no limit; at most 1024
  /// Not given: processors, where nothing speaks against it (Property::reason).
  std::optional<Binding> binding = {};
  HyperThreading hyper_threading = HyperThreading::automatic;
  CoreType cores = CoreType::any;
  /// Started requests of all models of the process with this run one after another, in the order of their
  /// starts.
  bool exclusive = false;
  /// The first that is given decides: precision, enforce_bf16 (true: bf16, false: model), execution_mode;
  /// else model.
  std::optional<Precision> precision = {};
  std::optional<bool> enforce_bf16 = {};
  ExecutionMode execution_mode = ExecutionMode::none;
  /// Optimisations to leave out, by name ("fuse-conv-simple"); "all": every optimisation.
  std::vector<std::string> disable = {};
  /// Nodes that no optimisation touches: names, or regular expressions (RE2's syntax) for the whole name. A
  /// broken expression throws Error(bad_option); one that fits no node is a warning.
  std::vector<std::string> exempt = {};
  /// Kernels that are wanted, whatever is estimated: "NODE=LABEL" or "OPERATOR=LABEL" (a kind, short "conv"),
  /// with an offer's label or its first words ("conv=native_1x1"). A kind takes it where it is offered.
  /// Throws Error(bad_option) for what the model does not have, and for a layer that has no such offer.
  std::vector<std::string> force = {};
  /// sse41, avx2, avx512, or native (no limit of its own). For the whole process, fixed by the first compile:
  /// another limit afterwards throws Error(bad_option), and so does one below what oneDNN runs where the
  /// process has used it before.
  std::string max_isa = "native";
  /// Stop after that many rewrites of the graph; negative: never. For finding a guilty rewrite.
  long stop_after = -1;
  /// Time every layer (Request::counters).
  bool profile = false;
  /// Plans kept in memory: one per combination of input shapes, and one for each part of the model whose
  /// shapes are found while running; 1 to 1000. Those of more than 256 MiB together go, whatever it says.
  std::size_t cached_plans = 8;
  /// Keep the weights as they were read beside the packed ones even when nothing needs them any more (models
  /// whose shapes are all known); for looking into a compiled model.
  bool keep_weights = false;
  /// A folder that keeps compiled models, so that the same model is ready sooner next time; made where it is
  /// missing, and never in the way: trouble with it is a warning. Empty: none.
  std::string cache_dir = {};
  /// What a compiled model in a file holds.
  CacheMode cache_mode = CacheMode::speed;
  /// MiB of cache_dir at most, 1 to 1048576; what was used longest ago goes first.
  std::size_t cache_size = 4096;
  /// Bounds while the model is compiled and run. Give them to ReadOptions, too: a model is read first.
  ModelLimits limits = {};
  /// Called from any thread that compiles or runs; must be thread-safe and not throw. Nothing is printed
  /// otherwise.
  LogCallback log = {};
  /// Called while the model is compiled, and when a run or output_ports() meets new shapes, from any thread
  /// that does it.
  ProgressCallback progress = {};
  /// Cancels the compilation: when a stop is requested, from any thread or from `progress`, CompiledModel's
  /// constructor frees what it has and throws Error(canceled), within 100 ms but for single calls of oneDNN.
  /// output_ports() and save() of the model end likewise. Inferences do not, nor what they plan for new
  /// shapes: Request::cancel() ends them.
  std::stop_token stop = {};

  /// Keys that set() was given: properties() tells them from defaults. Fields that differ from their defaults
  /// count as given, too.
  std::set<std::string, std::less<>> given = {};

  /// Sets one by its key ("CPU_THREADS_NUM", "PERF_COUNT", ...; see option_list()). "KEY_" in front of key or
  /// value is accepted, and "CPU_THROUGHPUT_" in front of a value. Throws Error(bad_option) that names the
  /// nearest key, or the values wanted; nothing is changed then.
  LAMINA_API void set(std::string_view key, std::string_view value);
};

struct OptionInfo {
  std::string key;     ///< "CPU_THREADS_NUM"
  std::string values;  ///< that it takes, in words
  std::string help;    ///< a sentence
};
/// Every key of Options::set.
LAMINA_API std::vector<OptionInfo> option_list();

/// A setting or a fact, as it is used.
struct Property {
  std::string key;
  std::string value;   ///< what is used
  std::string asked;   ///< what was given; empty when nothing was
  std::string reason;  ///< where they differ, or the machine decided: why; of LOADED_FROM_CACHE: from which
                       ///< file, or why not
  bool read_only = false;
};
/// What a model would get here with these options; streams as for convolutions bound by computing where they
/// depend on the model. Throws Error(bad_option).
LAMINA_API std::vector<Property> properties(const Options& options = {});

}  // namespace lamina
