#include "formats/tensorflow/layout.h"

#include <algorithm>

#include "formats/tensorflow/importer.h"
#include "ops/eval.h"
#include "ops/movement.h"
#include "ops/quantization.h"
#include "ops/shaping.h"

namespace lamina::tensorflow {
namespace {

constexpr std::int64_t kMostPad = std::int64_t{1} << 31;

Tensor transposed(const Tensor& t, const Ints& order) {
  Node node;
  node.op = Transpose{};
  node.inputs.resize(2);
  node.outputs.resize(1);
  return evaluate_node(node, {t.to_aligned(), from_ints(ElementType::i64, {std::ssize(order)}, order)}, {})
      .at(0);
}

/// The constant filled up with ones in front, then transposed; nothing when it is none or has more axes.
std::optional<Tensor> transposed_operand(const Call& c, ValueId v, const Ints& order) {
  const auto* t = c.graph().constant(v);
  if (!t || t->rank() > order.size()) return std::nullopt;
  if (t->size() == 1) return t->to_aligned();
  Dims dims(order.size() - t->rank(), 1);
  dims.insert(dims.end(), t->shape().begin(), t->shape().end());
  return transposed(t->reshaped(dims), order);
}

/// The constant transposed without a Transpose, or an invalid id.
ValueId transposed_constant(Call& c, ValueId weights, const Ints& order) {
  const Graph& g = c.graph();
  if (const auto* t = g.constant(weights); t && t->rank() == order.size())
    return c.constant(transposed(*t, order));
  if (const auto maker = g.producer(weights); maker.valid() && g.node(maker).op.is<FakeQuantize>()) {
    const Node& quantizer = g.node(maker);
    std::vector<Tensor> moved;
    for (auto v : quantizer.inputs)
      if (auto t = transposed_operand(c, v, order)) moved.push_back(std::move(*t));
    if (moved.size() == quantizer.inputs.size()) {
      const Op op = quantizer.op;
      Values inputs;
      for (auto& t : moved) inputs.push_back(c.constant(std::move(t)));
      return c.add(op, std::move(inputs));
    }
  }
  return {};
}

}  // namespace

Layout read_layout(const Call& c, std::size_t spatial, std::string_view attribute) {
  const auto text = c.s(attribute, "");
  Layout layout;
  layout.spatial = spatial;
  if (text.empty() || text == "NHWC" || text == "NDHWC" || text == "NWC") return layout;
  if (text != "NCHW" && text != "NCDHW" && text != "NCW") c.unsupported("{} \"{}\"", attribute, text);
  layout.channels_last = false;
  return layout;
}

ValueId to_channels_first(Call& c, ValueId v, const Layout& layout) {
  if (const auto& shape = c.shape(v); shape.ranked() && shape.rank() != layout.rank())
    c.fail("the input is {}, wanted rank {}", to_string(shape), layout.rank());
  return layout.channels_last ? c.to_channels_first(v, layout.rank()) : v;
}

ValueId to_framework(Call& c, ValueId v, const Layout& layout) {
  return layout.channels_last ? c.to_channels_last(v, layout.rank()) : v;
}

Ints spatial_part(const Layout& layout, const Ints& list) {
  const auto first = list.begin() + static_cast<std::ptrdiff_t>(layout.first_spatial());
  return {first, first + static_cast<std::ptrdiff_t>(layout.spatial)};
}

Ints read_spatial(const Call& c, const Layout& layout, std::string_view attribute, bool required) {
  const auto list = c.ints(attribute);
  if (list.empty() && required) c.fail("has no {}", attribute);
  if (list.empty()) return Ints(layout.spatial, 1);
  if (list.size() != layout.rank())
    c.fail("{} has {} values, wanted {}", attribute, list.size(), layout.rank());
  if (list[0] != 1 || list[layout.channel_axis()] != 1)
    c.unsupported("{} [{}] along batch or channels", attribute, fmt::join(list, ","));
  auto values = spatial_part(layout, list);
  for (auto v : values)
    if (v < 1 || v > INT32_MAX) c.fail("{} has {}, wanted 1 to {}", attribute, v, INT32_MAX);
  return values;
}

void read_padding(const Call& c, const Layout& layout, Window& window) {
  const auto text = c.s("padding", "");
  if (text == "SAME") {
    window.auto_pad = AutoPad::same_upper;
  } else if (text == "VALID") {
    window.auto_pad = AutoPad::valid;
  } else if (text == "EXPLICIT") {
    const auto pads = c.ints("explicit_paddings");
    if (pads.size() != 2 * layout.rank())
      c.fail("explicit_paddings has {} values, wanted {}", pads.size(), 2 * layout.rank());
    Ints begin, end;
    for (std::size_t i = 0; i < layout.rank(); ++i) {
      if (pads[2 * i] < 0 || pads[2 * i + 1] < 0 || pads[2 * i] >= kMostPad || pads[2 * i + 1] >= kMostPad)
        c.fail("explicit_paddings has {} and {}, wanted 0 to {}", pads[2 * i], pads[2 * i + 1], kMostPad - 1);
      begin.push_back(pads[2 * i]);
      end.push_back(pads[2 * i + 1]);
    }
    for (auto axis : {std::size_t{0}, layout.channel_axis()})
      if (begin[axis] != 0 || end[axis] != 0) c.fail("explicit_paddings pads the axis {}", axis);
    window.pads_begin = spatial_part(layout, begin);
    window.pads_end = spatial_part(layout, end);
  } else {
    c.fail("padding is \"{}\", wanted SAME, VALID or EXPLICIT", text);
  }
}

ValueId transposed_weights(Call& c, ValueId weights, const Ints& order) {
  const Graph& g = c.graph();
  while (g.producer(weights).valid() && g.node(g.producer(weights)).op.is<Identity>())
    weights = g.node(g.producer(weights)).inputs[0];
  auto& known = c.importer().scope().transposed[{weights, order}];
  if (!known.valid()) known = transposed_constant(c, weights, order);
  return known.valid() ? known : c.transpose(weights, order);
}

}  // namespace lamina::tensorflow
