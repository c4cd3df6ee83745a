#pragma once
/// TensorFlow's pictures have their channels last as a rule (NHWC), our operators have them at axis 1. Each
/// operator that cares stands between two Transposes, right by itself; rules bring them together.
#include "formats/tensorflow/call.h"
#include "ops/convolution.h"

namespace lamina::tensorflow {

/// Positions of an image's axes.
struct Layout {
  bool channels_last = true;
  std::size_t spatial = 2;
  std::size_t rank() const { return spatial + 2; }
  std::size_t channel_axis() const { return channels_last ? spatial + 1 : 1; }
  std::size_t first_spatial() const { return channels_last ? 1 : 2; }
};

/// The attribute data_format; NotSupported for formats such as NCHW_VECT_C.
Layout read_layout(const Call& c, std::size_t spatial, std::string_view attribute = "data_format");

/// Between the framework's axes and N, C, spatial...
ValueId to_channels_first(Call& c, ValueId v, const Layout& layout);
ValueId to_framework(Call& c, ValueId v, const Layout& layout);

/// The spatial numbers of a list with a number for each axis.
Ints spatial_part(const Layout& layout, const Ints& list);
/// The attribute, a number for each axis, which are 1 for batch and channels; all ones when it is absent and
/// not required.
Ints read_spatial(const Call& c, const Layout& layout, std::string_view attribute, bool required);

/// The attribute padding, with explicit_paddings. `strides` and `dilations` are there already.
void read_padding(const Call& c, const Layout& layout, Window& window);

/// A constant with its axes in another order; weights are transposed once, behind FakeQuantize and Identity,
/// too. Else a Transpose.
ValueId transposed_weights(Call& c, ValueId weights, const Ints& order);

}  // namespace lamina::tensorflow
