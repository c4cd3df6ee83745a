#pragma once
/// Caffe's mean images (.binaryproto).
#include <optional>
#include <string>
#include <utility>

#include "lamina/tensor.h"

namespace lamina {

/// The image [C,H,W] as f32. Throws FaqError.
Tensor read_mean_image(const std::string& path);

/// A window of that size: at (x, y), by default in the middle. Throws FaqError.
Tensor cropped(const Tensor& image, std::int64_t height, std::int64_t width,
               std::optional<std::pair<std::int64_t, std::int64_t>> offsets);

/// "(3,4)" as x and y. Throws FaqError(bad_option).
std::pair<std::int64_t, std::int64_t> parse_offsets(const std::string& text);

}  // namespace lamina
