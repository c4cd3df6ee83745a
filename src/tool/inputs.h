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
  std::vector<std::string> input;  ///< NAME=FILE, or FILE when there is one input; pictures fill a batch
  std::string inputs;              ///< an .npz: by name or in0, in1, ...
  PictureOptions picture;
  unsigned seed = 0;
  int batch = 0;  ///< size of batches, where inputs leave that open; 0: not said
  std::map<std::string, std::size_t> batch_axes = {};  ///< by input, npos: it has none; else in front
  bool only_shapes = false;     ///< inputs that were not given have no memory: for plans that do not run
  bool layouts_of_any = false;  ///< --layout may name inputs that are given no picture
  bool spare_files = false;     ///< more files than an input takes are left out, which is said
  bool files_in_order = false;  ///< files without a name go to the inputs in turn, an .npz by its names
  bool only_given = false;      ///< an input that no file has is an error
  bool sizes_wanted = false;    ///< unknown sizes of inputs that are made up are errors, batches are 1
};
void add_input_options(OptionSet& options, InputOptions& o);
void add_picture_options(OptionSet& options, PictureOptions& p);  ///< the same does

/// Shapes that are asked for, by input; -1: open.
using AskedShapes = std::vector<std::pair<std::string, Dims>>;

/// One tensor per input of the model. `notes`: what was made up, and what was done to pictures, a sentence
/// each.
std::vector<Tensor> gather_inputs(const std::vector<Port>& ports, const InputOptions& options,
                                  AskedShapes shapes, std::vector<std::string>& notes);
/// With the shapes of --shape.
std::vector<Tensor> gather_inputs(const std::vector<Port>& ports, const InputOptions& options,
                                  const Common& common, std::vector<std::string>& notes);

/// Where the batch of the input is; beyond its dimensions where it has none.
std::size_t batch_axis(const InputOptions& options, const std::string& input);

/// Finds an array by name, else by position ("in3", "out3").
const Tensor* find_array(const std::vector<std::pair<std::string, Tensor>>& arrays, const std::string& name,
                         const std::string& positional);

}  // namespace lamina::tool
