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

/// Precision of the computation. model: the model's own types, quantised layers in integers; f16 and bf16
/// tensors are computed in f32, and the log says so. f32: floats in f32, quantise steps computed literally,
/// no layer in integers. bf16: convolutions, matrix products and tensors between them in bf16 with f32 sums,
/// where that is faster; f32 if the processor, or max_isa, has no bf16 instructions, and the log says which.
/// f16: f32, and the log says so.
enum class Precision { model, f32, bf16, f16 };

/// performance asks for bf16 where the processor has it, accuracy for the model's precision.
enum class ExecutionMode { none, performance, accuracy };

/// What a program needs: short latency, or high throughput.
enum class PerformanceHint { none, latency, throughput, cumulative_throughput };

/// What each of lamina's own threads is bound to. The callers' threads are never bound.
enum class Binding { processors, numa_nodes, none };

enum class HyperThreading { automatic, on, off };
enum class CoreType { any, performance, efficient };

/// The number of streams, that is, of requests that run at the same time.
class Streams {
 public:
  enum class Kind { number, numa, automatic };
  static constexpr int kMost = 1024;
  constexpr Streams(int number) : number_(number) {}  // NOLINT: so that options.streams = 2
  /// numa: one per NUMA node. automatic: the smallest number that improves throughput.
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

/// What a compiled model in a file holds. speed: also the packed weights, which are mapped. size: no packed
/// weights; they are packed again when the file is opened, those of a cache entry from the model's file.
enum class CacheMode { speed, size };

/// Options of CompiledModel. docs/configuration.md describes the keys that set them, and their effects.
struct Options {
  /// Number of threads of all streams together, each stream's own included, at most 1024; 0: as many as the
  /// affinity mask, the container's limits and the oneTBB arena that compiles allow. A limit set by
  /// tbb::global_control holds, too.
  int threads = 0;
  /// Number of streams; without a value the hint decides.
  std::optional<Streams> streams = {};
  PerformanceHint hint = PerformanceHint::none;
  std::size_t hint_requests = 0;  ///< the most streams that the hint makes, up to 1024; 0: no limit
  /// Without a value threads are bound to processors, unless there is a reason against it (Property::reason).
  std::optional<Binding> binding = {};
  HyperThreading hyper_threading = HyperThreading::automatic;
  CoreType cores = CoreType::any;
  /// Started requests of all models with this option in the process run one after another, in the order of
  /// their starts.
  bool exclusive = false;
  /// The first of these that has a value decides: precision, enforce_bf16 (true: bf16, false: model),
  /// execution_mode. If none has a value, the precision is `model`.
  std::optional<Precision> precision = {};
  std::optional<bool> enforce_bf16 = {};
  ExecutionMode execution_mode = ExecutionMode::none;
  /// Optimisations to leave out, by name ("fuse-conv-simple"); "all": every optimisation.
  std::vector<std::string> disable = {};
  /// Nodes that no optimisation touches: names, or regular expressions (RE2's syntax) for the whole name. A
  /// broken expression throws Error(bad_option); one that matches no node is a warning.
  std::vector<std::string> exempt = {};
  /// Kernels to use, whatever the estimates say: "NODE=LABEL" or "OPERATOR=LABEL" (a kind, short "conv"),
  /// with a kernel's label or its first words ("conv=native_1x1"). For a kind the kernel is used wherever it
  /// is available. Throws Error(bad_option) for a node or kind that the model does not have, and for a node
  /// that the kernel cannot run.
  std::vector<std::string> force = {};
  /// Highest instruction set: sse41, avx2, avx512, or native (no limit). It is for the whole process, and
  /// fixed by the first compilation: another value afterwards throws Error(bad_option), and so does a limit
  /// below the level of oneDNN if the process has used oneDNN before.
  std::string max_isa = "native";
  /// Stop after that many rewrites of the graph; negative: never. For finding a wrong rewrite by bisection.
  long stop_after = -1;
  /// Time every layer (Request::counters).
  bool profile = false;
  /// Number of plans kept in memory: one per combination of input shapes, and one for each part of the model
  /// whose shapes are found while running; 1 to 1000. Plans beyond 256 MiB together are dropped in any case.
  std::size_t cached_plans = 8;
  /// Keep the original weights beside the packed ones even when they are no longer needed (in models
  /// whose shapes are all known); for inspecting a compiled model.
  bool keep_weights = false;
  /// A cache folder for compiled models, so that the same model is ready sooner next time. It is made if
  /// missing; problems with it are warnings, never errors. Empty: no cache.
  std::string cache_dir = {};
  /// What compiled models in files hold.
  CacheMode cache_mode = CacheMode::speed;
  /// Most MiB that cache_dir may take, 1 to 1048576; the least recently used entries are removed first.
  std::size_t cache_size = 4096;
  /// Limits while the model is compiled and run. Give them to ReadOptions, too, for reading the model.
  ModelLimits limits = {};
  /// Gets log messages, from any thread that compiles or runs; must be thread-safe and not throw. The library
  /// itself prints nothing.
  LogCallback log = {};
  /// Gets the progress of compiling, and of planning when a run or output_ports() meets new shapes, from any
  /// thread that does this work.
  ProgressCallback progress = {};
  /// Cancels the compilation: when a stop is requested, from any thread or from `progress`, CompiledModel's
  /// constructor frees its memory and throws Error(canceled), within 100 ms or when the current call of
  /// oneDNN returns. output_ports() and save() of the model end likewise. Inferences, and their planning for
  /// new shapes, are canceled by Request::cancel() instead.
  std::stop_token stop = {};

  /// Keys that were given to set(), so that properties() can tell them from defaults. Fields that differ from
  /// their defaults count as given, too.
  std::set<std::string, std::less<>> given = {};

  /// Sets an option by its key ("CPU_THREADS_NUM", "PERF_COUNT", ...; see option_list()). "KEY_" before key
  /// or value is accepted, and "CPU_THROUGHPUT_" before a value. Throws Error(bad_option), which names the
  /// nearest key or the accepted values, and changes nothing then.
  LAMINA_API void set(std::string_view key, std::string_view value);
};

struct OptionInfo {
  std::string key;     ///< "CPU_THREADS_NUM"
  std::string values;  ///< the accepted values, in words
  std::string help;    ///< a sentence
  /// The first of the keys that set the same thing; `key` itself where there is no other.
  std::string setting = {};
};
/// Every key of Options::set.
LAMINA_API std::vector<OptionInfo> option_list();

/// A setting or a fact, as it is used.
struct Property {
  std::string key;
  std::string value;   ///< what is used
  std::string asked;   ///< what was given; empty when nothing was
  std::string reason;  ///< why they differ, or why the machine decided so; for LOADED_FROM_CACHE: the file,
                       ///< or why there is none
  bool read_only = false;
};
/// The properties that a model would get on this machine with these options. If the streams depend on the
/// model, a compute-bound convolutional network is assumed. Throws Error(bad_option).
LAMINA_API std::vector<Property> properties(const Options& options = {});

}  // namespace lamina
