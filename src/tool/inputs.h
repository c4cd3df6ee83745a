#pragma once
/// Input tensors of a model, from files or made up.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tool/common.h"
#include "tool/image_tensor.h"

namespace lamina::tool {

struct InputOptions {
  std::vector<std::string> input;  ///< NAME=FILE, or FILE when there is one input; images fill a batch
  std::string inputs;              ///< an .npz: by name or in0, in1, ...
  ImageOptions image;
  unsigned seed = 0;
  int batch = 0;  ///< size of batches, where inputs leave that open; 0: not said
  std::map<std::string, std::size_t> batch_axes = {};  ///< by input, npos: it has none; else in front
  bool only_shapes = false;     ///< inputs that were not given have no memory: for plans that do not run
  bool layouts_of_any = false;  ///< --layout may name inputs that are given no image
  bool spare_files = false;     ///< more files than an input takes are left out, which is said
  bool files_in_order = false;  ///< files without a name go to the inputs in turn, an .npz by its names
  bool only_given = false;      ///< an input that no file has is an error
  bool no_files = false;        ///< the verb takes no files of inputs
  /// The model of the inputs: what it was compiled for says sizes that nothing else says. Null: not known.
  const Model* model = nullptr;
};
void add_input_options(OptionSet& options, InputOptions& o);
void add_image_options(OptionSet& options, ImageOptions& p);  ///< likewise

/// Shapes that are asked for, by input; -1: open.
using AskedShapes = std::vector<std::pair<std::string, Dims>>;

/// One tensor per input of the model. `notes`: what was made up, and what was done to images, a sentence
/// each. Sizes of inputs without a file: those of `shapes`; where that says nothing, those that a compiled
/// model was compiled for; else those of dimensions with the same name, and 1 for batches. Throws UsageError
/// that proposes sizes where one is still not known.
std::vector<Tensor> gather_inputs(const std::vector<Port>& ports, const InputOptions& options,
                                  AskedShapes shapes, std::vector<std::string>& notes);
/// Gathers the inputs of a model that was read, with the shapes of --shape.
std::vector<Tensor> gather_inputs(const Model& model, InputOptions options, const Common& common,
                                  std::vector<std::string>& notes);

/// "x[1,3,224,224], y[1]"
std::string inputs_text(const std::vector<Port>& ports, const std::vector<Dims>& shapes);

/// Where the batch of the input is; beyond its dimensions where it has none.
std::size_t batch_axis(const InputOptions& options, const std::string& input);

/// Finds an array by name, else by position ("in3", "out3").
const Tensor* find_array(const std::vector<std::pair<std::string, Tensor>>& arrays, const std::string& name,
                         const std::string& positional);

}  // namespace lamina::tool
