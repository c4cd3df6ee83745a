#pragma once
/// Limits of a model's memory, size and time. docs/untrusted-models.md says what each limit promises.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lamina {

/// Whether a model may keep data in other files. beside: in files below the model's own folder, never
/// through symbolic links. none: all data must be in the model's file, in the file that the caller names
/// (ReadOptions::weights) or in ModelBytes.
enum class ExternalFiles { beside, none };

/// Limits for untrusted models. No useful model exceeds the defaults. Limits of ReadOptions hold
/// while the model is read and for all that is compiled from it; those of Options hold while it is compiled
/// and run, too, and the smaller of two numbers counts. A model that exceeds a limit leads to
/// Error(over_limit), which names the node or tensor and the limit's key, before the memory is allocated.
/// Numbers out of range throw Error(bad_option).
struct ModelLimits {
  /// LIMIT_MEMORY: bytes of all tensors of the model together: constants that are not read in place from
  /// the file, packed weights, memory of the streams, results of requests, and temporary tensors; the
  /// model's files together must not be larger, either. 0: automatic. Then a tensor throws
  /// Error(out_of_memory) when it is larger than what the machine and the process' control groups have left,
  /// and Error(over_limit) when it is above 1 GiB and 1024 times the bytes of the model and its inputs.
  std::uint64_t memory = 0;
  /// LIMIT_ELEMENTS: elements of one tensor; sizes of 0 are left out of the product.
  std::uint64_t elements = std::uint64_t{1} << 34;
  /// LIMIT_NODES: nodes of the model as lamina reads it, including those of bodies and expanded functions.
  std::size_t nodes = 1'000'000;
  /// LIMIT_OUTPUTS: outputs of the model, and of one node.
  std::size_t outputs = 65'536;
  /// LIMIT_LOOP_ITERATIONS: iterations of one loop, each time that the loop runs.
  std::uint64_t loop_iterations = 100'000'000;
  /// LIMIT_COMPILE_SECONDS: seconds of reading the model, of CompiledModel's constructor, and of each
  /// planning for new shapes; each of them may take this time.
  double compile_seconds = 86'400;
  /// LIMIT_RUN_SECONDS: seconds of one inference, without its time in the queue.
  double run_seconds = 86'400;
  /// ALLOWED_OPERATORS: if not empty, the model must have no other operators. Names are the file's ("Conv",
  /// "com.microsoft:QGemm", "MaxPool") or lamina's ("Convolution"; `lamina ops` lists both). An operator of
  /// the file is allowed by its own name, or if the list has lamina's names of all operators that it becomes.
  std::vector<std::string> allowed_operators = {};
  /// DENIED_OPERATORS: operators that the model must not have, by the file's names or lamina's.
  std::vector<std::string> denied_operators = {};
  /// EXTERNAL_FILES: whether the model may keep data in other files.
  ExternalFiles external_files = ExternalFiles::beside;
};

}  // namespace lamina
