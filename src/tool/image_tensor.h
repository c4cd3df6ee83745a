#pragma once
/// Images as inputs of a model: layout, size, colour, values.
#include <string>
#include <vector>

#include "lamina/lamina.h"
#include "tool/image.h"

namespace lamina::tool {

struct ImageOptions {
  std::vector<double> mean, scale;  ///< (pixel - mean) / scale; one, or one per channel of the model
  std::vector<std::string> layout;  ///< "NHWC" or "NAME=NHWC"; empty: found out from the shape
  std::string color, fit;           ///< rgb (default) or bgr; stretch (default) or letterbox
  bool any() const;                 ///< one of them was given
};

/// The images as one tensor of the port's type: several fill its batch. Unknown sizes in `dims` (-1) become
/// the first image's own, in its proportions where only one is unknown. `notes` gets a sentence per image
/// that says all that was done to it. `paths`: of the images, for the sentences.
/// Throws Error(bad_input), UsageError for options that do not fit.
Tensor tensor_of(const std::vector<Image>& images, const std::vector<std::string>& paths, const Port& port,
                 Dims dims, const ImageOptions& options, std::vector<std::string>& notes);

}  // namespace lamina::tool
