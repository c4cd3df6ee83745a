#pragma once
/// Steps between a program's data and a model, as layers of the model: element types, layouts, means, scales.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lamina/export.h"
#include "lamina/model.h"

namespace lamina {

/// Numbers of an input, one for each channel, or one for all.
struct ChannelValues {
  std::string input;  ///< empty in all of a list: they are for the inputs in their order
  std::vector<double> values;
};

/// What the axes of an input or output mean: "NHWC", "N?HW", "N...C". `?`: any axis; `...`: any number of
/// them.
struct LayoutChange {
  std::string name;    ///< of an input or output; empty: all inputs
  std::string source;  ///< in the model
  std::string target;  ///< of the program's data, or in the IR that optimize() writes; empty: the same
};

/// In the order in which the steps come: types of inputs are converted to the model's, layouts are changed,
/// channels reversed; then (x - mean) / scale. Types of outputs are converted at the end.
struct Preprocessing {
  std::map<std::string, ElementType, std::less<>> input_types = {};  ///< of the program's data, by name
  std::map<std::string, ElementType, std::less<>> output_types = {};
  std::vector<LayoutChange> layout = {};
  std::vector<ChannelValues> mean_values = {};   ///< subtracted from inputs, by channel
  std::vector<ChannelValues> scale_values = {};  ///< what inputs are divided by then
  std::optional<double> scale = {};              ///< divides all inputs of floats
  bool reverse_input_channels = false;           ///< swaps RGB and BGR in inputs with 3 channels
};

/// The model with these steps in front and behind. It holds the layers of `model`, whose weights are not
/// copied. Such a model is not kept in a cache folder (Options::cache_dir). Throws Error(bad_input) for an
/// unknown name in the types; Error(bad_option) for other unknown names, for values that do not fit an input,
/// for a zero in scale_values, and for both scale and scale_values; Error(unsupported) for a model with
/// unsupported operators, and Error(bad_file) for a compiled model's file without weights. Thread-safe.
LAMINA_API Model preprocessed(const Model& model, const Preprocessing& steps);

}  // namespace lamina
