#pragma once
/// A model that was read and compiled, with a request, as most verbs need it.
#include "tool/inputs.h"

namespace lamina::tool {

/// True for Caffe's networks, where the reader computes constants from sizes: with other sizes they are read
/// again.
inline bool is_made_for_sizes(const Model& model) { return model.format() == "Caffe"; }
/// The model that the command line names; one that is made for sizes with those of --shape.
Model read_model(const Common& common);
/// Opens the model and prints the reader's warnings.
Model open_model(const Common& common);
/// The model with the shapes of --shape, read again if they say more than its file. Throws Error(bad_input)
/// for a wrong name or shape.
Model with_shapes(const Model& model, const Common& common);

/// The options with what --tune measures (tuned() of lamina/benchmark.h).
Options tuned_options(const Common& common, const Model& model, const Options& options,
                      const std::vector<Tensor>& inputs);

struct Session {
  Session(const Common& common, const InputOptions& inputs, Options options);

  Model model;
  std::vector<std::string> notes;  ///< inputs that were made up
  std::vector<Tensor> inputs;      ///< in the model's order
  CompiledModel compiled;
  Request request;  ///< with the inputs set
};

}  // namespace lamina::tool
