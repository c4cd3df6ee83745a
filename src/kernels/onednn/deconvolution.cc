/// Transposed convolution: f32, bf16 with f32 sums, and u8 or i8 with i32 sums.
#include <algorithm>

#include "kernels/onednn/convolution_offer.h"

namespace lamina::onednn {
namespace {

/// Largest stride: oneDNN's transposed convolutions walk along it while they are described.
constexpr std::int64_t kLargestStride = 1 << 20;

struct TransposedProblem {
  Dims x, w, y;  ///< the weights as [I, O/g, ...]
  std::int64_t groups;
  Geometry g;
  ElementType type;  ///< type of the operands
};

Cost deconvolution_cost(const Machine& machine, std::string_view implementation, ElementType type,
                        const Dims& x, const Dims& y, const Dims& w, std::int64_t groups) {
  const double work = multiply_adds(x, w) * filled_lanes(machine, w[1]) * share_of_f32(machine, type),
               bytes = bits_of(type) / 8.0 * static_cast<double>(element_count(x) + element_count(y));
  if (implementation.find("conv:any") == std::string_view::npos || is_depthwise(w, groups))
    return cost_of(machine, Family::brgemm_deconv, work, bytes);
  return cost_of(machine, Family::deconv_gradient, work, bytes) +
         calls_of(machine, Family::deconv_group, static_cast<double>(groups - 1));
}

/// Channels of weights [I, O/g, ...].
WeightChannels transposed_channels(const Dims& w, std::int64_t groups) {
  std::int64_t taps = 1;
  for (std::size_t i = 2; i < w.size(); ++i) taps *= w[i];
  return {w[1], taps, groups, w[0] / groups * w[1] * taps};
}

Verdict describe(const NodeView& v, TransposedProblem& p) {
  const auto &x = p.x, &w = p.w, &y = p.y;
  const std::vector<Dim> spatial(x.begin() + 2, x.end());
  std::vector<Dim> wanted;  // spatial sizes that input 3 asks for
  if (v.has(3)) wanted.assign(y.begin() + 2, y.end());
  const auto r = resolve_transposed(*v.op<ConvolutionBackpropData>(), spatial,
                                    std::vector<std::int64_t>(w.begin() + 2, w.end()), wanted);
  auto& g = p.g;
  g = {r.strides, r.dilations, r.pads_begin, r.pads_end};
  // The right pad also covers output_padding: out = s (in - 1) + (k - 1) d + 1 - left - right.
  for (std::size_t i = 0; i < g.strides.size(); ++i) {
    const auto full = g.strides[i] * (x[i + 2] - 1) + (w[i + 2] - 1) * g.dilations[i] + 1;
    g.right[i] = full - y[i + 2] - g.left[i];
    --g.dilations[i];
    if (g.left[i] < 0) return Verdict::no("negative pads");
    if (is_byte(p.type) && w[i + 2] < g.strides[i])
      return Verdict::no("int8: strides of {} for a kernel of {}", g.strides[i], w[i + 2]);
    if (g.strides[i] > kLargestStride) return Verdict::no("a stride of {}", g.strides[i]);
  }
  return Verdict::yes();
}

Verdict describe(const NodeView& v, const TransposedProblem& p, Integers& integers) {
  if (!is_byte(p.type)) return Verdict::yes();
  if (auto verdict =
          Integers::describe(v, v.constant(1), transposed_channels(p.w, p.groups), false, integers);
      !verdict)
    return verdict;
  if (!integers.args().empty())
    return Verdict::no("int8: oneDNN's transposed convolutions are wrong with zero points");
  return Verdict::yes();
}

/// [g, O/g, I/g, ...]: the same memory seen with O and I swapped.
Desc swapped_weights(const TransposedProblem& p) {
  const auto& w = p.w;
  const auto strides = strides_of(w, Layout::plain);
  Dims dims, steps;
  if (p.groups > 1) {
    dims.push_back(p.groups);
    steps.push_back(strides[0] * (w[0] / p.groups));
  }
  dims.insert(dims.end(), {w[1], w[0] / p.groups});
  steps.insert(steps.end(), {strides[1], strides[0]});
  dims.insert(dims.end(), w.begin() + 2, w.end());
  steps.insert(steps.end(), strides.begin() + 2, strides.end());
  return Desc(dims, *type_of(weights_type(p.type)), steps);
}

/// What a transposed convolution is asked for in one layout.
struct Attempt {
  const NodeView& v;
  const TransposedProblem& p;
  const Integers& integers;
  Desc weights;
  Layout layout;

  std::optional<dnnl::deconvolution_forward::primitive_desc> create(Answers& answers, const PostOps& post,
                                                                    bool with_bias) const {
    const auto bias = with_bias ? desc({p.y[1]}, ElementType::f32, Layout::plain) : Desc();
    const auto& g = p.g;
    auto asked = asked_of(Primitive::deconvolution, v, layout, post, integers, g, p.w[1] * p.groups);
    asked.bias = with_bias;
    return try_create(
        answers, asked, fmt::format("deconvolution {} {}", operands_name(v), name_of(layout)), [&] {
          return dnnl::deconvolution_forward::primitive_desc(
              engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::deconvolution_direct,
              desc(p.x, p.type, layout), any(weights.get_dims(), weights_type(p.type)), bias,
              desc(p.y, post.result, layout), g.strides, g.dilations, g.left, g.right, post.attr);
        });
  }

  void add(Answers& answers, const dnnl::deconvolution_forward::primitive_desc& pd,
           const PostOps& post) const {
    const auto together = is_depthwise(p.w, p.groups) ? p.w[0] : p.w[1];
    add_offer<dnnl::deconvolution_forward>(
        answers, v, pd, layout, together, post, weights, integers,
        deconvolution_cost(v.machine(), pd.impl_info_str(), p.type, p.x, p.y, p.w, p.groups));
  }
};

/// Adds the node's bias to what the offer makes, and takes those stages of the epilogue that `post` has.
bool add_bias_behind(const Attempt& a, Offer& o, const PostOps& post, Answers& answers) {
  const auto& v = a.v;
  const auto& y = a.p.y;
  Dims channels(y.size(), 1);
  channels[1] = y[1];
  const auto whole = desc(y, ElementType::f32, a.layout),
             bias = desc(channels, ElementType::f32, Layout::plain);
  const Asked asked{.primitive = Primitive::binary, .node = v, .layout = a.layout, .post = &post};
  const auto pd = try_create(answers, asked, "a bias after a transposed convolution", [&] {
    return dnnl::binary::primitive_desc(engine(), dnnl::algorithm::binary_add, whole, bias, whole, post.attr);
  });
  if (!pd) return false;
  o.label += "+bias";
  o.scratch = std::max(o.scratch, pd->scratchpad_desc().get_size());
  o.stages = post.stages;
  for (const auto i : post.same_layout_inputs) o.inputs[i] = a.layout;
  o.cost +=
      cost_of(v.machine(), Family::onednn_pass, 0, 8.0 * static_cast<double>(element_count(y))) + post.cost;
  o.make = [pd = *pd, operands = post.args, make = std::move(o.make)](MakeContext& context) {
    auto args = aligned(operands, context);
    args.push_back({DNNL_ARG_SRC_0, pd.src_desc(0), Arg::From::output, 0, {}});
    args.push_back({DNNL_ARG_SRC_1, pd.src_desc(1), Arg::From::input, 2, {}});
    args.push_back({DNNL_ARG_DST, pd.dst_desc(), Arg::From::output, 0, {}});
    return one_after_the_other(make(context),
                               make_primitive(dnnl::binary(pd), std::move(args), pd.scratchpad_desc()));
  };
  return true;
}

/// Sums of products only, with bias and stages behind: oneDNN's own passes for these are plain loops.
void offer_apart(const Attempt& a, const PostOps& post, Answers& answers) {
  PostOps none;
  none.attr = user_scratch();
  const auto pd = a.create(answers, none, false);
  if (!pd) return;
  a.add(answers, *pd, none);
  if (!a.v.has(2)) return;
  auto& offer = answers.offers.back();
  if (!add_bias_behind(a, offer, post, answers) && !add_bias_behind(a, offer, none, answers))
    answers.offers.pop_back();
}

/// Bias and stages may come behind sums of f32.
bool is_apart(const TransposedProblem& p, const PostOps& post) {
  return !is_byte(p.type) && post.result == ElementType::f32;
}

/// False if oneDNN computes the gradient of a convolution, then bias and stages in plain loops.
bool is_own(const dnnl::deconvolution_forward::primitive_desc& pd) {
  return std::string_view(pd.impl_info_str()).find("conv:any") == std::string_view::npos;
}

}  // namespace

void offer_deconvolution(const NodeView& v, Answers& answers) {
  if (const auto verdict = takes(v); !verdict) return answers.refuse("onednn", "{}", verdict.reason());
  const auto groups = v.op<ConvolutionBackpropData>()->groups;
  TransposedProblem p{v.dims(0), v.dims(1), v.out_dims(), groups, {}, multiplied(v)};
  if (const auto verdict = describe(v, p); !verdict) return answers.refuse("onednn", "{}", verdict.reason());
  Integers integers;
  if (const auto verdict = describe(v, p, integers); !verdict)
    return answers.refuse("onednn", "{}", verdict.reason());
  for (const auto layout : {Layout::channels_last, Layout::plain}) {
    if (layout == Layout::plain && is_byte(p.type)) break;
    const auto post = post_ops(v, p.y, layout, 1, groups == 1 ? 1 : 3);
    const Attempt attempt{v, p, integers, swapped_weights(p), layout};
    const auto pd = attempt.create(answers, post, v.has(2) || !post.bias.empty());
    const bool ends_sums = v.has(2) || post.stages != 0;
    if (is_apart(p, post) && ends_sums && !(pd && is_own(*pd)))
      offer_apart(attempt, post, answers);
    else if (pd)
      attempt.add(answers, *pd, post);
    if (!post.refusal.empty())
      answers.refuse("onednn", "epilogue ends after {} stages: {}", post.stages, post.refusal);
  }
}

}  // namespace lamina::onednn
