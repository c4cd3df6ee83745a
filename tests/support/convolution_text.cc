#include "tests/support/convolution_text.h"

#include <fmt/format.h>

namespace lamina::testing {

std::int64_t window_count(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t dilation,
                          std::int64_t pads) {
  const auto extent = dilation * (kernel - 1) + 1;
  return in + pads < extent ? 0 : (in + pads - extent) / stride + 1;
}

std::int64_t PictureConvolution::out_height() const {
  return window_count(height, kernel_h, stride_h, dilation_h, top + bottom);
}
std::int64_t PictureConvolution::out_width() const {
  return window_count(width, kernel_w, stride_w, dilation_w, left + right);
}

std::string PictureConvolution::weight_dims() const {
  return fmt::format("[{},{},{},{}]", outputs, channels / groups, kernel_h, kernel_w);
}

std::string text_of(const PictureConvolution& c, const ConvolutionWords& words) {
  const bool second = words.epilogue.find('z') != std::string::npos;
  const auto y = fmt::format("f32[{},{},{},{}]", c.images, c.outputs, c.out_height(), c.out_width());
  std::string body;
  if (!words.epilogue.empty())
    body = fmt::format(" {{\n body graph (a: {0}{1}) -> (r) {{\n {2}\n }}\n }}", y, second ? ", z: " + y : "",
                       words.epilogue);
  return fmt::format(
      "graph (x: {}[{},{},{},{}]{}{}) -> (y) {{\n{} y = {}(x{}{}) "
      "strides=[{},{}] dilations=[{},{}] pads_begin=[{},{}] pads_end=[{},{}]{} groups={}{}\n}}\n",
      words.element, c.images, c.channels, c.height, c.width, second ? ", q: " + y : "", words.inputs,
      words.constants, words.op, words.operands, second ? words.absent + ", q" : "", c.stride_h, c.stride_w,
      c.dilation_h, c.dilation_w, c.top, c.left, c.bottom, c.right, words.attributes, c.groups, body);
}

}  // namespace lamina::testing
