#pragma once
/// A model that was read and compiled, with a request, as most verbs need it.
#include <functional>

#include "api/inside.h"
#include "tool/inputs.h"

namespace lamina::tool {

/// True for Caffe's networks, where the reader computes constants from sizes: with other sizes they are read
/// again.
inline bool is_made_for_sizes(const Model& model) {
  return Inside::of(model).described().format == ModelFormat::caffe;
}
/// The model that the command line names; one that is made for sizes with those of --shape.
Model read_model(const Common& common);
/// Opens the model and prints the reader's warnings.
Model open_model(const Common& common);

/// The options with what --tune measures (tuned() of lamina/benchmark.h).
Options tuned_options(const Common& common, const Model& model, const Options& options,
                      const std::vector<Tensor>& inputs);

struct Session {
  /// `machine`: another one to plan for, or null. `look`: called with the model once it is read, before it is
  /// compiled, where it is given; what it throws ends the work.
  using Look = std::function<void(const Model&)>;
  Session(const Common& common, const InputOptions& inputs, Options options, const Machine* machine = nullptr,
          const Look& look = {});

  Model model;
  std::vector<std::string> notes;  ///< inputs that were made up
  std::vector<Tensor> inputs;      ///< of the compiled graph: the model's, then what its variables hold
  CompiledModel compiled;
  Request request;  ///< with the inputs set
  /// Applies the model's limits to the verb's other work (the interpreter, comparisons).
  std::unique_ptr<const Within> within;
  std::vector<Tensor> model_inputs() const;
  /// Runs the original model so many times by the interpreter; the request's variables and the inputs are
  /// then those after these runs.
  void advance(int steps);
  const Compiled& impl() const { return Inside::of(compiled); }
};

/// The graph with the shapes of --shape, types inferred anew. Throws Error(bad_input) for a wrong name or
/// shape.
Graph with_shapes(const Graph& graph, const Common& common);
/// The model with the shapes of --shape. Throws likewise.
Model with_shapes(const Model& model, const Common& common);

}  // namespace lamina::tool
