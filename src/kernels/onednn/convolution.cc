/// Convolution: f32, bf16 with f32 sums, and u8 or i8 with i32 sums.
#include <algorithm>

#include "kernels/onednn/convolution_offer.h"

namespace lamina::onednn {
namespace {

Geometry geometry(const Window& window, const Dims& x, const Dims& w) {
  std::vector<Dim> spatial(x.begin() + 2, x.end());
  const std::vector<std::int64_t> kernel(w.begin() + 2, w.end());
  const auto r = resolve(window, spatial, kernel);
  Geometry g{r.strides, r.dilations, r.pads_begin, r.pads_end};
  for (auto& d : g.dilations) --d;
  return g;
}

/// [O, I/g, ...] as [g, O/g, I/g, ...]
Dims grouped(const Dims& w, std::int64_t groups) {
  if (groups == 1) return w;
  Dims out{groups, w[0] / groups};
  out.insert(out.end(), w.begin() + 1, w.end());
  return out;
}

/// Output channels that are computed together, of weights [O, I/g, ...].
std::int64_t channels_together(const Dims& w, std::int64_t groups) {
  return groups > 1 && w[1] == 1 && w[0] == groups ? w[0] : w[0] / groups;
}

/// What oneDNN's choice costs. It computes whole vectors of output channels, however few there are.
Cost cost(const Machine& machine, std::string_view implementation, ElementType type, const Dims& x,
          const Dims& y, const Dims& w, std::int64_t groups) {
  const auto is = [&](std::string_view part) { return implementation.find(part) != std::string_view::npos; };
  const double filled = filled_lanes(machine, channels_together(w, groups));
  const bool depthwise = is("dw") || (is_byte(type) && w[1] == 1 && w[0] == groups);
  const double share = depthwise ? 1 : share_of_f32(machine, type);
  const double work = multiply_adds(y, w) * filled * share;
  const double bytes =
      bits_of(type) / 8 * static_cast<double>(element_count(x) + element_count(y) + element_count(w));
  if (is("1x1")) return cost_of(machine, Family::brgemm_1x1, work, bytes);
  if (is("brgconv")) return cost_of(machine, Family::brgemm_conv, work, bytes);
  if (depthwise) return cost_of(machine, Family::jit_depthwise, work, bytes);
  return cost_of(machine, Family::jit_conv, work, bytes);
}

struct Problem {
  Dims x, w, y;
  Geometry g;
};

/// A picture of width 1 is turned on its side, which moves no byte: oneDNN works along the width.
void lay_flat(Problem& p) {
  if (p.x.size() != 4 || p.x[3] != 1 || p.w[3] != 1 || p.y[3] != 1 || p.g.left[1] != 0 || p.g.right[1] != 0)
    return;
  for (auto* dims : {&p.x, &p.w, &p.y}) std::swap((*dims)[2], (*dims)[3]);
  for (auto* dims : {&p.g.strides, &p.g.dilations, &p.g.left, &p.g.right}) std::swap((*dims)[0], (*dims)[1]);
}

Verdict describe(const NodeView& v, std::int64_t groups, Integers& integers) {
  const auto w = v.dims(1);
  const WeightChannels channels{w[0], static_cast<std::int64_t>(element_count(w)) / w[0]};
  if (auto verdict = Integers::describe(v, v.constant(1), channels, false, integers); !verdict)
    return verdict;
  if (v.element(0) == ElementType::i8 && !integers.args().empty() && groups > 1 && w[1] == 1 &&
      !is_depthwise(w, groups))
    return Verdict::no("int8: a zero point of s8 with one channel and several results in a group");
  return Verdict::yes();
}

/// The last offer is a good one of oneDNN.
bool fast(const Answers& answers) {
  if (answers.offers.empty()) return false;
  const auto& label = answers.offers.back().label;
  return label.starts_with("brg") || label.starts_with("brd") || label.starts_with("jit");
}

}  // namespace

void offer_convolution(const NodeView& v, Answers& answers) {
  const auto& op = *v.op<Convolution>();
  if (const auto verdict = takes(v); !verdict) return answers.refuse("onednn", "{}", verdict.reason());
  Problem p{v.dims(0), v.dims(1), v.out_dims(), geometry(op, v.dims(0), v.dims(1))};
  for (std::size_t i = 0; i < p.g.left.size(); ++i)
    if (p.g.left[i] < 0 || p.g.right[i] < 0) return answers.refuse("onednn", "negative pads");
  const auto type = multiplied(v);
  Integers integers;
  if (is_byte(type))
    if (const auto verdict = describe(v, op.groups, integers); !verdict)
      return answers.refuse("onednn", "{}", verdict.reason());
  const int weights_mask = op.groups == 1 ? 1 : 3;
  if (const auto post = post_ops(v, p.y, Layout::channels_last, 1, weights_mask);
      post.same_layout_inputs.empty() && !post.whole_constant)
    lay_flat(p);
  const auto& [x, w, y, g] = p;
  const auto wg = grouped(w, op.groups);
  for (const auto layout : {Layout::channels_last, Layout::plain}) {
    if (layout == Layout::plain && is_byte(type)) break;  // only its reference takes that
    if (layout == Layout::plain && fast(answers)) {
      answers.refuse("onednn", "convolution in plain layout: not tried, since {} is available",
                     answers.offers.back().label);
      break;
    }
    auto post = post_ops(v, v.out_dims(), layout, 1, weights_mask);
    integers.set(post.attr);
    const auto bias = v.has(2) || !post.bias.empty() ? desc({w[0]}, ElementType::f32, Layout::plain) : Desc();
    const auto asked = asked_of(Primitive::convolution, v, layout, post, integers, g, w[0]);
    const auto pd =
        try_create(answers, asked, fmt::format("convolution {} {}", operands_name(v), name_of(layout)), [&] {
          return dnnl::convolution_forward::primitive_desc(
              engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
              desc(x, type, layout), any(wg, weights_type(type)), bias, desc(y, post.result, layout),
              g.strides, g.dilations, g.left, g.right, post.attr);
        });
    if (!post.refusal.empty())
      answers.refuse("onednn", "epilogue ends after {} stages: {}", post.stages, post.refusal);
    if (!pd) continue;
    const auto together = channels_together(w, op.groups);
    add_offer<dnnl::convolution_forward>(answers, v, *pd, layout, together, post,
                                         desc(wg, weights_type(type), Layout::plain), integers,
                                         cost(v.machine(), pd->impl_info_str(), type, x, y, w, op.groups));
  }
}

}  // namespace lamina::onednn
