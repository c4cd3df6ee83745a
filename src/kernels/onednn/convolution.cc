/// Convolution and transposed convolution: f32, bf16 with f32 sums, and u8 or i8 with i32 sums.
#include "ops/convolution.h"

#include <algorithm>
#include <cmath>

#include "kernels/onednn/integers.h"
#include "kernels/onednn/post_ops.h"
#include "kernels/onednn_isa.h"

namespace lamina::onednn {
namespace {

struct Geometry {
  Dims strides, dilations, left, right;  // oneDNN counts dilation from 0
};

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

double multiply_adds(const Dims& y, const Dims& w) {
  double n = static_cast<double>(element_count(y));
  for (std::size_t i = 1; i < w.size(); ++i) n *= static_cast<double>(w[i]);
  return n;
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
  const double work = multiply_adds(y, w) * (is("gemm") && !is("brg") ? 1 : filled) * share;
  const double bytes =
      bits_of(type) / 8 * static_cast<double>(element_count(x) + element_count(y) + element_count(w));
  if (is("1x1")) return cost_of(machine, Family::brgemm_1x1, work, bytes);
  if (is("brgconv")) return cost_of(machine, Family::brgemm_conv, work, bytes);
  if (depthwise) return cost_of(machine, Family::jit_depthwise, work, bytes);
  if (is("gemm"))
    return cost_of(machine, groups > 1 ? Family::gemm_conv_groups : Family::gemm_conv, work,
                   bytes * static_cast<double>(element_count(w)) / static_cast<double>(w[0] * w[1]));
  return cost_of(machine, Family::jit_conv, work, bytes);
}

/// A matrix product, then sums of columns.
bool is_product(std::string_view implementation) {
  return implementation.find("gemm") != std::string_view::npos &&
         implementation.find("brg") == std::string_view::npos;
}

bool one_point(const Dims& x) {
  return std::all_of(x.begin() + 2, x.end(), [](Dim d) { return d == 1; });
}

Cost deconvolution_cost(const Machine& machine, std::string_view implementation, ElementType type,
                        const Dims& x, const Dims& y, const Dims& w, std::int64_t groups) {
  const double work = multiply_adds(x, w) * filled_lanes(machine, w[1]) * share_of_f32(machine, type),
               bytes = bits_of(type) / 8.0 * static_cast<double>(element_count(x) + element_count(y));
  const bool depthwise = groups > 1 && w[1] == 1 && w[0] == groups;
  if (implementation.find("conv:any") == std::string_view::npos || depthwise)
    return cost_of(machine, Family::brgemm_deconv, work, bytes);
  return cost_of(machine, Family::deconv_gradient, work, bytes) +
         calls_of(machine, Family::deconv_group, static_cast<double>(groups - 1));
}

/// With AVX2, weights of a few channels are read through a mask that runs into pages of others: up to 200
/// times as slow as it should be.
Verdict wide_enough(const Machine& machine, std::string_view implementation, std::int64_t channels) {
  if (machine.library == Isa::avx2 && channels < 4 && implementation.find("brg") != std::string_view::npos)
    return Verdict::no("{}: {} output channels of a group, wanted 4 with AVX2", implementation, channels);
  return Verdict::yes();
}

Verdict takes(const NodeView& v) {
  if (auto verdict = multiplies(v); !verdict) return verdict;
  const auto rank = v.rank(0);
  if (rank < 3 || rank > 5) return Verdict::no("rank {}, wanted 3 to 5", rank);
  if (v.has(2) && v.rank(2) != 1 && v.dims(2).size() > 1) return Verdict::no("bias of rank {}", v.rank(2));
  if (element_count(v.out_dims()) == 0 || element_count(v.dims(0)) == 0) return Verdict::no("empty tensors");
  return Verdict::yes();
}

/// What oneDNN's reorders take for weights that come at run time: of those of 8 bits as long as for many
/// bytes each, one by one where it sums them as well.
Cost packing_cost(const NodeView& v, const Desc& from, const Desc& to, const Integers& integers) {
  constexpr double kByte = 90, kSummedByte = 700;
  const bool sums = !integers.args().empty() || v.element(0) == ElementType::i8;
  const double bytes = is_byte(multiplied(v))
                           ? static_cast<double>(from.get_size()) * (sums ? kSummedByte : kByte)
                           : 2.0 * static_cast<double>(from.get_size() + to.get_size());
  return cost_of(v.machine(), Family::transpose, 0, bytes);
}

/// Fills what both kinds of convolution share of an offer. `together`: output channels of a group.
template <class Primitive, class Pd>
Offer offer_of(const NodeView& v, const Pd& pd, Layout layout, std::int64_t together, PostOps post,
               const Desc& source_weights, const Integers& integers, const Cost& cost) {
  Offer o(v, label(v.machine(), pd.impl_info_str(), operands_name(v)), layout);
  for (auto i : post.same_layout_inputs) o.inputs[i] = layout;
  const Tensor weights = v.constant(1) ? *v.constant(1) : Tensor();
  o.scratch = pd.scratchpad_desc().get_size();
  std::size_t packed_at = 0;
  if (weights.valid()) {
    o.consumed = {1};
    if (!integers.looks_at_weights()) o.packed = {1};
  } else {
    const PackedAtRun packed(pd.scratchpad_desc(), source_weights, pd.weights_desc());
    packed_at = packed.at;
    o.scratch = packed.scratch;
  }
  o.consumed.insert(o.consumed.end(), integers.consumed().begin(), integers.consumed().end());
  if (v.op<ConvolutionBackpropData>() && v.has(3)) o.consumed.push_back(3);
  o.stages = post.stages;
  // Behind products stages run element by element.
  o.cost = cost + post.cost * (is_product(pd.impl_info_str())    ? 12
                               : layout == Layout::channels_last ? filled_lanes(v.machine(), together)
                                                                 : 1);
  if (!weights.valid()) o.cost += packing_cost(v, source_weights, pd.weights_desc(), integers);
  const bool bias = v.has(2);
  post.args.insert(post.args.end(), integers.args().begin(), integers.args().end());
  if (!post.bias.empty())
    post.args.push_back({DNNL_ARG_BIAS, pd.bias_desc(), Arg::From::constant, 0,
                         Tensor::of({static_cast<std::int64_t>(post.bias.size())}, post.bias)});
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
    return make_primitive(Primitive(pd), std::move(args), pd.scratchpad_desc());
  };
  return o;
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

/// u8 weights become s8.
ElementType weights_type(ElementType source) { return is_byte(source) ? ElementType::i8 : source; }

bool is_depthwise(const Dims& w, std::int64_t groups) { return groups > 1 && w[1] == 1 && w[0] == groups; }

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

/// Of products of integers: what oneDNN has chosen is exact.
Verdict is_right(const NodeView& v, std::string_view implementation, const PostOps& post,
                 const Integers& integers) {
  if (!is_byte(multiplied(v))) return Verdict::yes();
  if (auto verdict = is_exact(implementation); !verdict) return verdict;
  const auto w = v.dims(1), y = v.out_dims();
  const auto* convolution = v.op<Convolution>();
  if (convolution && post.operands && v.machine().library != Isa::avx512 &&
      is_depthwise(w, convolution->groups) && y[1] % 8 != 0)
    return Verdict::no("int8: {} is wrong with an operand and {} channels", implementation, y[1]);
  if (post.result != ElementType::i32) return Verdict::yes();
  const auto groups = convolution ? convolution->groups : v.op<ConvolutionBackpropData>()->groups;
  const auto numbers = static_cast<std::int64_t>(element_count(w));
  return integers.stores_sums(implementation, convolution ? numbers / w[0] : numbers / (w[1] * groups));
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
      answers.refuse("onednn",
                     "convolution plain: not asked, {} is there and plain would be im2col and a product",
                     answers.offers.back().label);
      break;
    }
    auto post = post_ops(v, v.out_dims(), layout, 1, weights_mask);
    integers.set(post.attr);
    const auto bias = v.has(2) || !post.bias.empty() ? desc({w[0]}, ElementType::f32, Layout::plain) : Desc();
    const auto pd =
        try_create(answers, fmt::format("convolution {} {}", operands_name(v), name_of(layout)), [&] {
          return dnnl::convolution_forward::primitive_desc(
              engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
              desc(x, type, layout), any(wg, weights_type(type)), bias, desc(y, post.result, layout),
              g.strides, g.dilations, g.left, g.right, post.attr);
        });
    if (!post.refusal.empty())
      answers.refuse("onednn", "epilogue ends after {} stages: {}", post.stages, post.refusal);
    if (!pd) continue;
    const auto together = channels_together(w, op.groups);
    if (const auto verdict = is_right(v, pd->impl_info_str(), post, integers); !verdict) {
      answers.refuse("onednn", "{}", verdict.reason());
      continue;
    }
    if (const auto verdict = wide_enough(v.machine(), pd->impl_info_str(), together); !verdict) {
      answers.refuse("onednn", "{}", verdict.reason());
      continue;
    }
    if (layout == Layout::plain && is_product(pd->impl_info_str()) && one_point(x)) {
      answers.refuse("onednn", "{}: takes a plain picture of one point for a channels-last one",
                     pd->impl_info_str());
      continue;
    }
    answers.offers.push_back(offer_of<dnnl::convolution_forward>(
        v, *pd, layout, together, post, desc(wg, weights_type(type), Layout::plain), integers,
        cost(v.machine(), pd->impl_info_str(), type, x, y, w, op.groups)));
  }
}

/// Its transposed convolutions walk along a stride while they are described.
constexpr std::int64_t kLargestStride = 1 << 20;

namespace {

/// Of weights [I, O/g, ...].
WeightChannels transposed_channels(const Dims& w, std::int64_t groups) {
  std::int64_t taps = 1;
  for (std::size_t i = 2; i < w.size(); ++i) taps *= w[i];
  return {w[1], taps, groups, w[0] / groups * w[1] * taps};
}

}  // namespace

void offer_deconvolution(const NodeView& v, Answers& answers) {
  const auto& op = *v.op<ConvolutionBackpropData>();
  if (const auto verdict = takes(v); !verdict) return answers.refuse("onednn", "{}", verdict.reason());
  const auto type = multiplied(v);
  const auto x = v.dims(0), w = v.dims(1), y = v.out_dims();  // w: [I, O/g, ...]
  const std::vector<Dim> spatial(x.begin() + 2, x.end());
  std::vector<Dim> wanted;  // spatial sizes that input 3 asks for
  if (v.has(3)) wanted.assign(y.begin() + 2, y.end());
  const auto r = resolve_transposed(op, spatial, std::vector<std::int64_t>(w.begin() + 2, w.end()), wanted);
  Geometry g{r.strides, r.dilations, r.pads_begin, r.pads_end};
  // The right pad also covers output_padding: out = s (in - 1) + (k - 1) d + 1 - left - right.
  for (std::size_t i = 0; i < g.strides.size(); ++i) {
    const auto full = g.strides[i] * (x[i + 2] - 1) + (w[i + 2] - 1) * g.dilations[i] + 1;
    g.right[i] = full - y[i + 2] - g.left[i];
    --g.dilations[i];
    if (g.left[i] < 0) return answers.refuse("onednn", "negative pads");
    if (is_byte(type) && w[i + 2] < g.strides[i])
      return answers.refuse("onednn", "int8: strides of {} for a kernel of {}", g.strides[i], w[i + 2]);
    if (g.strides[i] > kLargestStride) return answers.refuse("onednn", "a stride of {}", g.strides[i]);
  }
  Dims wg;  // [g, O/g, I/g, ...]
  if (op.groups > 1) wg.push_back(op.groups);
  wg.push_back(w[1]);
  wg.push_back(w[0] / op.groups);
  wg.insert(wg.end(), w.begin() + 2, w.end());
  auto strides = strides_of(w, Layout::plain);  // the same memory seen with O and I swapped
  Dims ws;
  if (op.groups > 1) ws.push_back(strides[0] * (w[0] / op.groups));
  ws.push_back(strides[1]);
  ws.push_back(strides[0]);
  ws.insert(ws.end(), strides.begin() + 2, strides.end());
  Integers integers;
  if (is_byte(type))
    if (const auto ok =
            Integers::describe(v, v.constant(1), transposed_channels(w, op.groups), false, integers);
        !ok)
      return answers.refuse("onednn", "{}", ok.reason());
  if (!integers.args().empty())
    return answers.refuse("onednn", "int8: oneDNN's transposed convolutions are wrong with zero points");
  for (const auto layout : {Layout::channels_last, Layout::plain}) {
    if (layout == Layout::plain && is_byte(type)) break;
    const auto post = post_ops(v, y, layout, 1, op.groups == 1 ? 1 : 3);
    const auto bias = v.has(2) || !post.bias.empty() ? desc({y[1]}, ElementType::f32, Layout::plain) : Desc();
    const auto pd =
        try_create(answers, fmt::format("deconvolution {} {}", operands_name(v), name_of(layout)), [&] {
          return dnnl::deconvolution_forward::primitive_desc(
              engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::deconvolution_direct,
              desc(x, type, layout), any(wg, weights_type(type)), bias, desc(y, post.result, layout),
              g.strides, g.dilations, g.left, g.right, post.attr);
        });
    if (!post.refusal.empty())
      answers.refuse("onednn", "epilogue ends after {} stages: {}", post.stages, post.refusal);
    if (!pd) continue;
    if (is_product(pd->impl_info_str())) {
      answers.refuse("onednn", "{}: wrong on small pictures with bias, and its stages make numbers of NaN",
                     pd->impl_info_str());
      continue;
    }
    if (const auto verdict = is_right(v, pd->impl_info_str(), post, integers); !verdict) {
      answers.refuse("onednn", "{}", verdict.reason());
      continue;
    }
    const bool longer = std::any_of(g.right.begin(), g.right.end(), [](auto n) { return n < 0; });
    if (is_byte(type) && longer && std::string_view(pd->impl_info_str()).starts_with("jit_deconvolution")) {
      answers.refuse("onednn", "int8: {}: wrong with output padding", pd->impl_info_str());
      continue;
    }
    const auto together = w[1] == 1 && w[0] == op.groups ? w[0] : w[1];  // [I, O/g, ...]
    if (const auto verdict = wide_enough(v.machine(), pd->impl_info_str(), together); !verdict) {
      answers.refuse("onednn", "{}", verdict.reason());
      continue;
    }
    answers.offers.push_back(offer_of<dnnl::deconvolution_forward>(
        v, *pd, layout, together, post, Desc(wg, *type_of(weights_type(type)), ws), integers,
        deconvolution_cost(v.machine(), pd->impl_info_str(), type, x, y, w, op.groups)));
  }
}

}  // namespace lamina::onednn
