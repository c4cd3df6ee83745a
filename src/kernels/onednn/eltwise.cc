/// Element-wise operators on their own: one tensor, or two of which one may broadcast.
#include <algorithm>

#include "kernels/onednn/algorithms.h"
#include "ops/elementwise.h"

namespace lamina::onednn {
namespace {

/// Fewer channels fill no vector of a pixel.
constexpr std::int64_t kLeastChannels = 16;

void offer_unary(const NodeView& v, Answers& answers) {
  const auto e = eltwise_of(v.node(), [&](std::size_t i) { return v.constant(i); });
  if (!e) return answers.refuse("onednn", "oneDNN has no eltwise for {}", v.node().op.name());
  if (loses_nan(*e)) return answers.refuse("onednn", "{} turns NaN into a number there", v.node().op.name());
  const auto dims = v.dims(0);
  const Dims flat{static_cast<std::int64_t>(element_count(dims))};  // any dense layout is the same to it
  const auto d = desc(flat, ElementType::f32, Layout::plain);
  const auto pd = try_create(answers, {Primitive::eltwise, v}, "eltwise", [&] {
    return dnnl::eltwise_forward::primitive_desc(engine(), dnnl::prop_kind::forward_inference, e->algorithm,
                                                 d, d, e->alpha, e->beta, user_scratch());
  });
  if (!pd) return;
  for (const auto layout : {Layout::plain, Layout::channels_last}) {
    if (layout == Layout::channels_last && dims.size() < 3) continue;
    Offer o(v, label(v.machine(), pd->impl_info_str(), "f32"), layout);
    o.in_place = {{0, 0}};
    for (std::size_t i = 1; i < v.inputs(); ++i) o.consumed.push_back(i);
    o.scratch = pd->scratchpad_desc().get_size();
    o.cost = cost_of(v.machine(), Family::onednn_pass, 0, 8.0 * static_cast<double>(flat[0])) +
             stage_cost(v.machine(), v.node().op, static_cast<std::size_t>(flat[0]));
    o.make = [pd = *pd](MakeContext&) {
      return make_primitive(dnnl::eltwise_forward(pd),
                            {{DNNL_ARG_SRC, pd.src_desc(), Arg::From::input, 0, {}},
                             {DNNL_ARG_DST, pd.dst_desc(), Arg::From::output, 0, {}}},
                            pd.scratchpad_desc());
    };
    answers.offers.push_back(std::move(o));
  }
}

void offer_binary(const NodeView& v, Answers& answers) {
  const auto& op = v.node().op;
  const auto algorithm = binary_of(op, 0);
  if (op.is<Maximum>() || op.is<Minimum>())
    return answers.refuse("onednn", "{} turns NaN into a number there", op.name());
  if (!algorithm)
    return answers.refuse("onednn", "oneDNN has no binary primitive for {}", v.node().op.name());
  const auto y = v.out_dims();
  std::size_t big = v.dims(0) == y ? 0 : 1;
  if (v.dims(big) != y) return answers.refuse("onednn", "both operands broadcast");
  if (big == 1 && !has(v.node().op.info().traits, Trait::commutative))
    return answers.refuse("onednn", "the left operand broadcasts");
  if (y.empty() || y.size() > 5) return answers.refuse("onednn", "rank {}", y.size());
  Dims small(y.size() - v.rank(1 - big), 1);
  for (auto d : v.dims(1 - big)) small.push_back(d);
  for (const auto layout : {Layout::plain, Layout::channels_last}) {
    if (layout == Layout::channels_last && y.size() < 3) continue;
    const bool same = v.dims(1 - big) == y;  // one of lower rank has another channel axis
    const auto small_layout = same ? layout : Layout::plain;
    const auto a = desc(y, ElementType::f32, layout), b = desc(small, ElementType::f32, small_layout);
    const auto pd = try_create(
        answers, {Primitive::binary, v, layout},
        fmt::format("binary {} with {}", to_string(y), to_string(small)),
        [&] { return dnnl::binary::primitive_desc(engine(), *algorithm, a, b, a, user_scratch()); });
    if (!pd) continue;
    Offer o;
    o.label = label(v.machine(), pd->impl_info_str(), "f32");
    o.inputs = {layout, layout};
    if (!same) o.inputs[1 - big] = Layout::plain;
    o.outputs = {layout};
    o.in_place = {{big, 0}};
    o.scratch = pd->scratchpad_desc().get_size();
    o.cost = cost_of(
        v.machine(), Family::onednn_pass, 0,
        8.0 * static_cast<double>(element_count(y)) + 4.0 * static_cast<double>(element_count(small)));
    if (layout == Layout::plain && small.back() == 1)
      o.cost += calls_of(v.machine(), Family::onednn_line, static_cast<double>(element_count(small)));
    if (layout == Layout::channels_last && !same && y[1] < kLeastChannels)  // pixel by pixel
      o.cost += calls_of(v.machine(), Family::onednn_pixel,
                         static_cast<double>(element_count(y)) / static_cast<double>(y[1]));
    o.make = [pd = *pd, big](MakeContext&) {
      return make_primitive(dnnl::binary(pd),
                            {{DNNL_ARG_SRC_0, pd.src_desc(0), Arg::From::input, big, {}},
                             {DNNL_ARG_SRC_1, pd.src_desc(1), Arg::From::input, 1 - big, {}},
                             {DNNL_ARG_DST, pd.dst_desc(), Arg::From::output, 0, {}}},
                            pd.scratchpad_desc());
    };
    answers.offers.push_back(std::move(o));
  }
}

}  // namespace

void offer_eltwise(const NodeView& v, Answers& answers) {
  if (v.element(0) != ElementType::f32 || v.out_element() != ElementType::f32)
    return answers.refuse("onednn", "element types other than f32");
  if (element_count(v.out_dims()) == 0) return answers.refuse("onednn", "empty tensors");
  if (v.node().op.has(Trait::unary_elementwise)) return offer_unary(v, answers);
  if (v.element(1) != ElementType::f32) return answers.refuse("onednn", "element types other than f32");
  offer_binary(v, answers);
}

/// Conversions to bf16 and back. In one go with a change of the layout they are slower than one after the
/// other.
void offer_convert(const NodeView& v, Answers& answers) {
  const auto from = v.element(0), to = v.out_element();
  const bool narrows = from == ElementType::f32 && to == ElementType::bf16;
  if ((!narrows && (from != ElementType::bf16 || to != ElementType::f32)) || !multiplies_bf16(v.machine()))
    return answers.refuse("onednn", "from {} to {}", name_of(from), name_of(to));
  if (element_count(v.out_dims()) == 0) return answers.refuse("onednn", "empty tensors");
  const Dims flat{static_cast<std::int64_t>(element_count(v.out_dims()))};
  const auto a = desc(flat, from, Layout::plain), b = desc(flat, to, Layout::plain);
  const auto pd = try_create(answers, {Primitive::reorder, v}, "reorder", [&] {
    return dnnl::reorder::primitive_desc(engine(), a, engine(), b, user_scratch());
  });
  if (!pd) return;
  for (const auto layout : {Layout::plain, Layout::channels_last}) {
    if (layout == Layout::channels_last && v.rank(0) < 3) continue;
    Offer o(v, label(v.machine(), pd->impl_info_str(), name_of(to)), layout);
    o.scratch = pd->scratchpad_desc().get_size();
    o.cost = cost_of(v.machine(), Family::onednn_pass, 0, 6.0 * static_cast<double>(flat[0]));
    o.make = [pd = *pd, a, b](MakeContext&) {
      return make_primitive(
          dnnl::reorder(pd),
          {{DNNL_ARG_FROM, a, Arg::From::input, 0, {}}, {DNNL_ARG_TO, b, Arg::From::output, 0, {}}},
          pd.scratchpad_desc());
    };
    answers.offers.push_back(std::move(o));
  }
}

}  // namespace lamina::onednn
