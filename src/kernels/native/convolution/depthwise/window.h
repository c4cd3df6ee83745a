#pragma once
/// The kernel (lines.h) that runs a depthwise window, and the order of its channels in vectors.
#include "kernels/native/convolution/depthwise/lines.h"
#include "kernels/native/convolution/window.h"

namespace lamina::depthwise {

using Kernel = void (*)(const Lines&);
/// The one of `kernels` for a window with two spatial axes.
Kernel kernel_for(const windows::Geometry& g, const Kernels& kernels);

/// The window and the sizes of the picture and of the result; where they lie is the caller's.
LineGeometry line_geometry(const windows::Geometry& g);

/// The first channel of a vector: the last one overlaps the one before when the channels do not fill it.
std::int64_t first_channel(std::int64_t vector, std::int64_t channels, std::int64_t lanes);

/// values[channels][size] as [vector][size][lane]; `one_value`: the same for all channels.
Tensor by_vectors(const float* values, std::int64_t size, std::int64_t channels, std::int64_t lanes,
                  bool one_value = false);

/// A constant bias, one number or one for each channel, in that order; not valid when there is none.
/// What that has.
PackedSize size_by_vectors(std::int64_t size, std::int64_t channels, std::int64_t lanes);
Tensor bias_by_vectors(const Tensor& source, std::int64_t channels, std::int64_t lanes, WeightStore& store);

}  // namespace lamina::depthwise
