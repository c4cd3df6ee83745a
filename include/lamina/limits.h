#pragma once
/// What a model may take at most. docs/untrusted-models.md says what each limit promises.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lamina {

/// Which files a model may name as the place of its data. They are only ever looked for beneath the model's
/// own folder, and never through symbolic links. none: all data must be in the model's file, in one that the
/// caller names (ReadOptions::weights) or in ModelBytes.
enum class ExternalFiles { beside, none };

/// Bounds for models that come from strangers. No sane model meets the defaults. Limits of ReadOptions hold
/// while the model is read and for all that is compiled of it; those of Options hold while it is compiled and
/// run, too, and of two numbers the smaller one counts. What goes beyond a limit throws
/// Error(over_limit), which names the node or tensor and the limit's key, before the memory is taken. Numbers
/// out of range throw Error(bad_option).
struct ModelLimits {
  /// LIMIT_MEMORY: bytes of all tensors of the model together: constants that are not read where they lie in
  /// the file, packed weights, memory of the streams, results of requests, and all that is in between; the
  /// model's files together must not be larger, either. 0: no number. Then a tensor throws
  /// Error(out_of_memory) when it is more than what the machine and the process' control groups have left,
  /// and Error(over_limit) when it is above 1 GiB and 1024 times the bytes of the model and its inputs.
  std::uint64_t memory = 0;
  /// LIMIT_ELEMENTS: of one tensor, the product of its sizes beside zeros.
  std::uint64_t elements = std::uint64_t{1} << 34;
  /// LIMIT_NODES: of the model, those of all bodies and expanded functions counted, as lamina reads them.
  std::size_t nodes = 1'000'000;
  /// LIMIT_OUTPUTS: of the model, and of one node.
  std::size_t outputs = 65'536;
  /// LIMIT_LOOP_ITERATIONS: of one loop, each time that it is run.
  std::uint64_t loop_iterations = 100'000'000;
  /// LIMIT_COMPILE_SECONDS: of reading the model, of CompiledModel's constructor, and each time that a run
  /// meets new shapes. Each of them may take so long.
  double compile_seconds = 86'400;
  /// LIMIT_RUN_SECONDS: of one inference, without the time in the queue.
  double run_seconds = 86'400;
  /// ALLOWED_OPERATORS: when there are any, the model has no others. Names are the file's ("Conv",
  /// "com.microsoft:QGemm", "MaxPool") or lamina's ("Convolution"; `lamina ops` lists both). An operator of
  /// the file is allowed by its own name, or when lamina's names of all that becomes of it are there.
  std::vector<std::string> allowed_operators = {};
  /// DENIED_OPERATORS: the model has none of these, by any of both names.
  std::vector<std::string> denied_operators = {};
  /// EXTERNAL_FILES.
  ExternalFiles external_files = ExternalFiles::beside;
};

}  // namespace lamina
