/// Convolutions. Where axes of weights are is written as OIX, XIO, IOX, XOI: O, I, and X for the spatial
/// ones.
#include "ops/convolution.h"

#include <algorithm>

#include "formats/onednn_graph/call.h"
#include "ops/elementwise.h"

namespace lamina::onednn_graph {
namespace {

/// The weights with their axes in the order `wanted` ("oix").
ValueId weights_as(const Call& c, std::string_view wanted, std::string_view fallback, std::size_t spatial) {
  const auto format = c.s("weights_format", fallback);
  auto letters = format;
  std::sort(letters.begin(), letters.end());
  if (letters != "iox") c.fail("attribute \"weights_format\" is \"{}\", wanted oix, iox, xio or xoi", format);
  const auto w = c.in(1);
  if (c.known_rank(w) != spatial + 2)
    c.fail("the weights have shape {}, wanted rank {}", to_string(c.shape(w)), spatial + 2);
  Ints order;
  for (const char letter : wanted) {
    auto at = static_cast<std::int64_t>(format.find(letter));
    if (format.find('x') < format.find(letter)) at += static_cast<std::int64_t>(spatial) - 1;
    for (std::size_t i = 0; i < (letter == 'x' ? spatial : 1); ++i)
      order.push_back(at + static_cast<std::int64_t>(i));
  }
  return std::is_sorted(order.begin(), order.end()) ? w : c.transpose(w, order);
}

std::int64_t groups_of(const Call& c) {
  const auto groups = c.i("groups", 1);
  if (groups < 1) c.fail("attribute \"groups\" is {}, wanted 1 or more", groups);
  return groups;
}

Values convert_convolution(const Call& c) {
  auto x = c.to_channels_first(c.in(0));
  const auto spatial = c.spatial_axes(x);
  Convolution op;
  static_cast<Window&>(op) = c.window(spatial);
  op.groups = groups_of(c);
  x = c.without_negative_pads(x, op);
  Values inputs{x, weights_as(c, "oix", "xio", spatial)};
  if (c.has(2)) inputs.push_back(c.in(2));
  return {c.to_framework(c.add(op, std::move(inputs)))};
}

/// With auto_pad the result is at least as large as the strides say.
void pad_same(const Call& c, ConvolutionBackpropData& op, const Shape& weights) {
  if (op.auto_pad == AutoPad::valid) {
    op.auto_pad = AutoPad::explicit_;
    return;
  }
  if (op.auto_pad == AutoPad::explicit_) return;
  const bool upper = op.auto_pad == AutoPad::same_upper;
  for (std::size_t i = 0; i < op.strides.size(); ++i) {
    const auto& size = weights[i + 2];
    if (!size.known()) c.unsupported("auto_pad of weights of unknown size");
    const auto total = std::max<std::int64_t>((size.size() - 1) * op.dilations[i] + 1 - op.strides[i], 0);
    op.pads_begin.push_back(upper ? total / 2 : total - total / 2);
    op.pads_end.push_back(total - op.pads_begin[i]);
  }
  op.auto_pad = AutoPad::explicit_;
}

Values convert_transposed(const Call& c) {
  const auto x = c.to_channels_first(c.in(0));
  const auto spatial = c.spatial_axes(x);
  const auto weights = weights_as(c, "iox", "xoi", spatial);
  ConvolutionBackpropData op;
  static_cast<Window&>(op) = c.window(spatial);
  op.groups = groups_of(c);
  if (c.has("output_padding")) op.output_padding = c.spatial_list("output_padding", spatial, 0);
  pad_same(c, op, c.shape(weights));
  auto y = c.add(op, {x, weights});
  if (c.has(2)) y = c.add(Add{}, {y, c.along_channels(c.in(2), y)});
  return {c.to_framework(y)};
}

}  // namespace

void register_convolution(ConverterTable& t) {
  t.add("ConvTranspose", convert_transposed);
  t.add("Convolution", convert_convolution);
}

}  // namespace lamina::onednn_graph
