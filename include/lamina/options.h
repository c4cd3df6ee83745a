#pragma once
/// How a model is compiled and run.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "lamina/export.h"
#include "lamina/log.h"
#include "lamina/progress.h"

namespace lamina {

/// model: the model's own types; f16 and bf16 tensors are computed in f32, and the log says so. f32: f32 for
/// every floating-point value, quantise steps literally: what model does so far, too, and the log says so.
/// bf16: without effect until there are kernels for it; the log says so.
enum class Precision { model, f32, bf16 };

struct Options {
  /// Threads of one request, at most 1024; 0: as many as the affinity mask, the container's limits and the
  /// oneTBB arena that compiles allow. A request that runs inside an arena of as many threads uses that one,
  /// else one of its own; a limit set by tbb::global_control holds for both.
  int threads = 0;
  Precision precision = Precision::model;
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
  /// Time every layer (Request::layer_times).
  bool profile = false;
  /// Plans kept in memory: one per combination of input shapes, and one for each part of the model whose
  /// shapes are found while running; 1 to 1000. Those of more than 256 MiB together go, whatever it says.
  std::size_t cached_plans = 8;
  /// Keep the weights as they were read beside the packed ones even when nothing needs them any more (models
  /// whose shapes are all known); for looking into a compiled model.
  bool keep_weights = false;
  /// Called from any thread that compiles or runs; must be thread-safe and not throw. Nothing is printed
  /// otherwise.
  LogCallback log = {};
  /// Called while the model is compiled, and when a run or output_ports() meets new shapes, from any thread
  /// that does it.
  ProgressCallback progress = {};

  /// Sets one by its key ("CPU_THREADS_NUM", "PERF_COUNT", ...; see option_list()). A leading "KEY_" is
  /// accepted. Throws Error(bad_option) that names the nearest key, or the values wanted.
  LAMINA_API void set(std::string_view key, std::string_view value);
};

struct OptionInfo {
  std::string key;     ///< "CPU_THREADS_NUM"
  std::string values;  ///< that it takes, in words
  std::string help;    ///< a sentence
};
/// Every key of Options::set.
LAMINA_API std::vector<OptionInfo> option_list();

}  // namespace lamina
