#pragma once
/// What offers of convolutions and of transposed ones share.
#include "kernels/generated_code.h"
#include "kernels/onednn/integers.h"
#include "kernels/onednn/kept.h"
#include "kernels/onednn/post_ops.h"
#include "ops/convolution.h"

namespace lamina::onednn {

/// Number of multiply-adds for the output `y` with weights [O, I/g, ...].
double multiply_adds(const Dims& y, const Dims& w);
/// One output for each group, which has one channel.
bool is_depthwise(const Dims& w, std::int64_t groups);
/// u8 weights become s8.
ElementType weights_type(ElementType source);

/// Operands and sizes that oneDNN can describe.
Verdict takes(const NodeView& v);
/// What rows of refused.cc look at. `outputs`: channels of the result.
Asked asked_of(Primitive primitive, const NodeView& v, Layout layout, const PostOps& post,
               const Integers& integers, const Geometry& window, std::int64_t outputs);

Cost packing_cost(const NodeView& v, const Desc& from, const Desc& to, const Integers& integers);

/// Adds an offer of either kind of convolution. `together`: output channels of a group.
template <class Primitive, class Pd>
void add_offer(Answers& answers, const NodeView& v, const Pd& pd, Layout layout, std::int64_t together,
               PostOps post, const Desc& source_weights, const Integers& integers, const Cost& cost) {
  Offer o(v, label(v.machine(), pd.impl_info_str(), operands_name(v)), layout);
  for (auto i : post.same_layout_inputs) o.inputs[i] = layout;
  const Tensor weights = v.constant(1) ? *v.constant(1) : Tensor();
  o.scratch = pd.scratchpad_desc().get_size();
  std::size_t packed_at = 0;
  if (weights.valid()) {
    o.consumed = {1};
    if (!integers.looks_at_weights()) o.packed = {1};
  } else {
    const auto packed = packed_at_run(pd.scratchpad_desc(), source_weights, pd.weights_desc());
    if (!packed)
      return answers.refuse("onednn", "{}: oneDNN packs no such weights at run time", pd.impl_info_str());
    packed_at = packed->at;
    o.scratch = packed->scratch;
  }
  o.consumed.insert(o.consumed.end(), integers.consumed().begin(), integers.consumed().end());
  if (v.op<ConvolutionBackpropData>() && v.has(3)) o.consumed.push_back(3);
  o.stages = post.stages;
  o.cost = cost + post.cost * (layout == Layout::channels_last ? filled_lanes(v.machine(), together) : 1);
  if (!weights.valid()) o.cost += packing_cost(v, source_weights, pd.weights_desc(), integers);
  const bool bias = v.has(2) && !pd.bias_desc().is_zero();
  post.args.insert(post.args.end(), integers.args().begin(), integers.args().end());
  if (!post.bias.empty())
    post.args.push_back({DNNL_ARG_BIAS, pd.bias_desc(), Arg::From::constant, 0,
                         Tensor::of({static_cast<std::int64_t>(post.bias.size())}, post.bias)});
  const auto described = describe_kept(pd, post.args);
  if (described && !may_be_made(*described))
    return answers.refuse("onednn", "{}: oneDNN never releases its code, and has made that of {} layers",
                          pd.impl_info_str(), kept_convolutions());
  o.make = [=, operands = std::move(post.args), prepare = integers.prepare(),
            key = "onednn" + integers.key()](MakeContext& context) {
    auto args = aligned(operands, context);
    args.push_back({DNNL_ARG_SRC, pd.src_desc(), Arg::From::input, 0, {}});
    if (weights.valid())
      args.push_back({DNNL_ARG_WEIGHTS, pd.weights_desc(), Arg::From::constant, 0,
                      pack(context, weights, source_weights, pd.weights_desc(), key, prepare)});
    else
      args.push_back({DNNL_ARG_WEIGHTS,
                      pd.weights_desc(),
                      Arg::From::reordered,
                      1,
                      {},
                      Layout::plain,
                      source_weights,
                      packed_at});
    if (bias) args.push_back({DNNL_ARG_BIAS, pd.bias_desc(), Arg::From::input, 2, {}});
    args.push_back({DNNL_ARG_DST, pd.dst_desc(), Arg::From::output, 0, {}});
    const auto make = [&]() -> dnnl::primitive { return Primitive(pd); };
    return make_primitive(described ? kept(*described, make) : make(), std::move(args), pd.scratchpad_desc());
  };
  answers.offers.push_back(std::move(o));
}

}  // namespace lamina::onednn
