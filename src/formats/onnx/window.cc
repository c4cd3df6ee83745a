#include "formats/onnx/window.h"

namespace lamina::onnx {
namespace {

AutoPad read_auto_pad(const Call& c) {
  const auto text = c.s("auto_pad", "NOTSET");
  if (text == "NOTSET" || text.empty()) return AutoPad::explicit_;
  if (text == "SAME_UPPER") return AutoPad::same_upper;
  if (text == "SAME_LOWER") return AutoPad::same_lower;
  if (text == "VALID") return AutoPad::valid;
  c.fail("auto_pad is \"{}\", wanted NOTSET, SAME_UPPER, SAME_LOWER or VALID", text);
}

Ints read_list(const Call& c, std::string_view name, std::size_t wanted) {
  auto values = c.ints(name);
  if (!values.empty() && values.size() != wanted)
    c.fail("{} has {} values, wanted {}", name, values.size(), wanted);
  return values;
}

}  // namespace

void read_window(const Call& c, Window& window, std::size_t spatial) {
  window.strides = read_list(c, "strides", spatial);
  window.dilations = read_list(c, "dilations", spatial);
  window.auto_pad = read_auto_pad(c);
  const auto pads = read_list(c, "pads", 2 * spatial);
  if (window.auto_pad != AutoPad::explicit_ || pads.empty()) return;
  window.pads_begin.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(spatial));
  window.pads_end.assign(pads.begin() + static_cast<std::ptrdiff_t>(spatial), pads.end());
}

Ints read_kernel(const Call& c) {
  auto kernel = c.ints("kernel_shape");
  for (const auto k : kernel)
    if (k <= 0) c.fail("kernel_shape has {}, wanted more than 0", k);
  return kernel;
}

}  // namespace lamina::onnx
