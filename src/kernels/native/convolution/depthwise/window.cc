#include "kernels/native/convolution/depthwise/window.h"

#include <algorithm>

#include "base/work_partition.h"
#include "ops/eval.h"

namespace lamina::depthwise {

Kernel kernel_for(const windows::Geometry& g, const Kernels& k) {
  if (g.outputs < k.lanes) return k.part;
  const auto taps = g.kernel[2], stride = g.stride[2];
  if (g.dilation[2] != 1) return k.any;
  if (taps == 3 && stride == 1)
    return g.kernel[1] == 3 && g.stride[1] == 1 && g.dilation[1] == 1 ? k.three_square : k.three;
  if (taps == 3 && stride == 2) return k.three_by_two;
  if (taps == 5 && stride == 1) return k.five;
  if (taps == 5 && stride == 2) return k.five_by_two;
  return k.any;
}

LineGeometry line_geometry(const windows::Geometry& g) {
  LineGeometry s{};
  s.in_height = g.in[1];
  s.in_width = g.in[2];
  s.out_width = g.out[2];
  s.kernel_h = g.kernel[1];
  s.kernel_w = g.kernel[2];
  s.stride_h = g.stride[1];
  s.stride_w = g.stride[2];
  s.dilation_h = g.dilation[1];
  s.dilation_w = g.dilation[2];
  s.top = g.pad[1];
  s.left = g.pad[2];
  return s;
}

std::int64_t first_channel(std::int64_t vector, std::int64_t channels, std::int64_t lanes) {
  return std::max<std::int64_t>(0, std::min(vector * lanes, channels - lanes));
}

Tensor by_vectors(const float* values, std::int64_t size, std::int64_t channels, std::int64_t lanes,
                  bool one_value) {
  const auto vectors = ceil_div(channels, lanes);
  Tensor out(ElementType::f32, {vectors * size * lanes});
  float* to = out.data<float>().data();
  for (std::int64_t n = 0; n < vectors; ++n, to += size * lanes)
    for (std::int64_t lane = 0; lane < std::min(lanes, channels); ++lane)
      for (std::int64_t i = 0; i < size; ++i)
        to[i * lanes + lane] = values[one_value ? 0 : (first_channel(n, channels, lanes) + lane) * size + i];
  return out;
}

PackedSize size_by_vectors(std::int64_t size, std::int64_t channels, std::int64_t lanes) {
  return {ElementType::f32, ceil_div(channels, lanes) * size * lanes};
}

Tensor bias_by_vectors(const Tensor& source, std::int64_t channels, std::int64_t lanes, WeightStore& store) {
  if (!source.valid()) return {};
  return store.moved(source, fmt::format("native_depthwise bias {} {}", channels, lanes),
                     size_by_vectors(1, channels, lanes), [&](const Tensor& bias) {
                       const auto values = to_floats(bias);
                       return by_vectors(values.data(), 1, channels, lanes, values.size() == 1);
                     });
}

}  // namespace lamina::depthwise
