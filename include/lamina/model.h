#pragma once
/// Models, compiled models and requests: read, compile, run.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lamina/export.h"
#include "lamina/options.h"
#include "lamina/tensor.h"

namespace lamina {

class LoadedModel;  // internal
class Compiled;     // internal
class Runner;       // internal

/// An input or output of a model.
struct Port {
  std::string name;
  ElementType type = ElementType::undefined;
  bool ranked = true;                        ///< false: not even the number of dimensions is known
  Dims shape;                                ///< -1: known only at run time
  std::vector<std::string> dimension_names;  ///< of unknown dimensions ("batch"); empty where unnamed
};

/// "f32[1,3,height,width]"
LAMINA_API std::string to_string(const Port& port);

/// A model as read from a file: ONNX, or OpenVINO IR (.xml with its .bin beside it). Immutable; copies are
/// cheap. Weights stay in the mapped file. Thread-safe.
class LAMINA_API Model {
 public:
  /// Throws Error(bad_file) when the file is missing or damaged. A model with unsupported operators can be
  /// read.
  explicit Model(const std::string& path);
  const std::vector<Port>& inputs() const;
  const std::vector<Port>& outputs() const;
  /// What a request keeps from run to run (ReadValue and Assign of OpenVINO), by name; most models have none.
  const std::vector<Port>& variables() const;
  /// Texts that the file's maker left in it, by key (ONNX: metadata_props); empty for IR.
  const std::map<std::string, std::string>& metadata() const;
  /// "ONNX" or "OpenVINO IR"
  const std::string& format() const;
  /// One text per unsupported operator type, with the names of its nodes; compile() refuses when there are
  /// any.
  const std::vector<std::string>& unsupported() const;
  std::shared_ptr<const LoadedModel> share() const;  ///< internal

 private:
  std::shared_ptr<const LoadedModel> impl_;
};

/// Time of one layer in the last run.
struct LayerTime {
  std::string name;    ///< of the layer that was left after fusing
  std::string kernel;  ///< "jit_avx512_1x1_f32"
  double microseconds = 0;
};

/// What an optimisation did.
struct Fusion {
  std::string rule;
  std::size_t count = 0;
};

class CompiledModel;

/// Runs a compiled model on memory of its own. Use one request per thread: a request runs one inference at a
/// time. A request keeps its compiled model alive.
class LAMINA_API Request {
 public:
  Request(Request&&) noexcept;
  Request& operator=(Request&&) noexcept;
  ~Request();

  /// The tensor is shared, not copied; it must stay unchanged during run(). Throws Error(bad_input) when
  /// there is no such input, or when type or shape do not fit it.
  void set_input(std::size_t index, Tensor tensor);
  void set_input(const std::string& name, Tensor tensor);
  /// Gives memory for an output (used when type and shape fit; otherwise the request's own).
  void set_output(std::size_t index, Tensor tensor);
  /// Runs one inference in the calling thread and its helpers. Throws Error(bad_input) when an input is
  /// missing. A run that throws leaves inputs and variables as they were, and no results; the request can be
  /// used on.
  void run();
  /// Result of the last run; overwritten by the next (clone() keeps it). Throws Error(bad_input) when nothing
  /// has run, or the last run failed.
  const Tensor& output(std::size_t index) const;
  const Tensor& output(const std::string& name) const;
  /// A copy of what the variable holds now. Throws Error(bad_input) when there is no such variable, or while
  /// its initial value is yet to be computed of the inputs of the first run.
  Tensor variable(const std::string& name) const;
  /// Copies the value. Throws Error(bad_input) when there is no such variable, or when type or shape do not
  /// fit it.
  void set_variable(const std::string& name, const Tensor& value);
  /// All variables have their initial values again, as in a new request: a new sequence begins.
  void reset_state();
  /// Layer by layer, when Options::profile is set.
  std::vector<LayerTime> layer_times() const;
  /// Bytes of this request's memory for tensors.
  std::size_t memory() const;
  const Runner& runner() const;  ///< internal

 private:
  friend class Compiled;
  class State;
  explicit Request(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// A model made ready for this processor. Immutable; copies are cheap; thread-safe.
class LAMINA_API CompiledModel {
 public:
  /// Throws Error(unsupported) that names every unsupported operator, Error(bad_option) for unknown rule
  /// names.
  explicit CompiledModel(const Model& model, const Options& options = {});
  const std::vector<Port>& inputs() const;
  const std::vector<Port>& outputs() const;
  const std::vector<Port>& variables() const;
  Request create_request() const;
  /// Convenience: one inference on a request from a pool inside. Inputs in the model's order. Nothing is kept
  /// from call to call: variables begin with their initial values.
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs) const;
  Tensor operator()(const Tensor& input) const { return (*this)(std::vector<Tensor>{input}).at(0); }
  /// How often each optimisation fired.
  std::vector<Fusion> fusions() const;
  int threads() const;
  /// Bytes of packed weights so far.
  std::size_t weight_memory() const;
  std::shared_ptr<const Compiled> share() const;  ///< internal

 private:
  std::shared_ptr<const Compiled> impl_;
};

/// "lamina 0.1.0"
LAMINA_API std::string version();

}  // namespace lamina
