#pragma once
/// Input tensors of a model, from files or made up.
#include <string>
#include <vector>

#include "tool/common.h"
#include "tool/image_tensor.h"

namespace lamina::tool {

struct InputOptions {
  std::vector<std::string> input;  ///< NAME=FILE, or FILE when there is one input; pictures fill a batch
  std::string inputs;              ///< an .npz: by name or in0, in1, ...
  PictureOptions picture;
  unsigned seed = 0;
  int batch = 0;                ///< first dimension of the inputs that leave it open; 0: not said
  bool only_shapes = false;     ///< inputs that were not given have no memory: for plans that do not run
  bool layouts_of_any = false;  ///< --layout may name inputs that are given no picture
  bool spare_files = false;     ///< more files than an input takes are left out, which is said
  bool sizes_wanted = false;    ///< unknown sizes of inputs that are made up are errors, batches are 1
};
void add_input_options(OptionSet& options, InputOptions& o);

/// One tensor per input of the model. `notes`: what was made up, and what was done to pictures, a sentence
/// each.
std::vector<Tensor> gather_inputs(const std::vector<Port>& ports, const InputOptions& options,
                                  const Common& common, std::vector<std::string>& notes);

/// The first dimension is a batch that the model leaves open.
bool leaves_batch_open(const Port& port);

/// Finds an array by name, else by position ("in3", "out3").
const Tensor* find_array(const std::vector<std::pair<std::string, Tensor>>& arrays, const std::string& name,
                         const std::string& positional);

}  // namespace lamina::tool
