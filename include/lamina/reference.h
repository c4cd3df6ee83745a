#pragma once
/// Runs a model by the reference interpreter: slow, plain code for every operator, without any optimisation.
/// Its results are what `lamina check` compares with.
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "lamina/export.h"
#include "lamina/model.h"
#include "lamina/tensor.h"

namespace lamina {

struct ReferenceOptions {
  /// Runs with the same inputs; a model's variables are kept from run to run. At least 1.
  int steps = 1;
  /// Values of variables before the first run, by name; others have their initial values.
  std::map<std::string, Tensor> variables = {};
  /// Cancels the work, which then throws Error(canceled).
  std::stop_token stop = {};
};

struct ReferenceResult {
  std::vector<Tensor> outputs;              ///< of the last run, in the model's order
  std::map<std::string, Tensor> variables;  ///< after the last run, by name
};

/// Runs the graph of the file. `inputs`: in the model's order, with the types and sizes that its inputs have.
/// The results own their memory. It takes one thread, and memory for all values that are still needed. A
/// model with unsupported operators throws Error(unsupported). Throws Error(bad_input) for inputs and
/// variables that do not fit, Error(bad_option) for `steps`, Error(over_limit), Error(canceled), and
/// Error(bad_file) for a compiled model whose file has no weights. Thread-safe.
LAMINA_API ReferenceResult run_reference(const Model& model, const std::vector<Tensor>& inputs,
                                         const ReferenceOptions& options = {});

}  // namespace lamina
