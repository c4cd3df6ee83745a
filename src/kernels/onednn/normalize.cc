/// Layer normalisation, LRN, means over pictures and resampling, f32.
#include <algorithm>

#include "kernels/onednn/onednn.h"
#include "kernels/onednn_isa.h"
#include "ops/normalization.h"
#include "ops/reduction.h"
#include "ops/resize.h"

namespace lamina::onednn {
namespace {

/// A primitive that reads input 0 and writes output 0.
template <class Primitive, class Pd>
Offer simple_offer(const NodeView& v, const Pd& pd, Layout layout, const Cost& cost) {
  Offer o(v, label(v.machine(), pd.impl_info_str(), "f32"), layout);
  for (std::size_t i = 1; i < v.inputs(); ++i) o.consumed.push_back(i);
  o.stages = 0;
  o.scratch = pd.scratchpad_desc().get_size();
  o.cost = cost;
  o.make = [pd](MakeContext&) {
    return make_primitive(Primitive(pd),
                          {{DNNL_ARG_SRC, pd.src_desc(), Arg::From::input, 0, {}},
                           {DNNL_ARG_DST, pd.dst_desc(), Arg::From::output, 0, {}}},
                          pd.scratchpad_desc());
  };
  return o;
}

Verdict f32_only(const NodeView& v) {
  if (v.element(0) != ElementType::f32 || v.out_element() != ElementType::f32)
    return Verdict::no("element types other than f32");
  if (element_count(v.dims(0)) == 0) return Verdict::no("empty tensors");
  return Verdict::yes();
}

double bytes(const NodeView& v) {
  return 4.0 * static_cast<double>(element_count(v.dims(0)) + element_count(v.out_dims()));
}

void offer_lrn(const NodeView& v, const LRN& op, Answers& answers) {
  const auto x = v.dims(0);
  const auto* axes = v.constant(1);
  if (!axes || to_ints(*axes) != Ints{1} || x.size() != 4)
    return answers.refuse("onednn", "LRN across other axes than channels");
  if (op.size % 2 == 0)  // oneDNN takes size - 1, in the middle
    return answers.refuse("onednn", "LRN over a window of {}, wanted an odd number", op.size);
  for (const auto layout : {Layout::channels_last, Layout::plain}) {
    const auto d = desc(x, ElementType::f32, layout);
    const auto pd =
        try_create(answers, {Primitive::lrn, v, layout}, fmt::format("lrn {}", name_of(layout)), [&] {
          return dnnl::lrn_forward::primitive_desc(engine(), dnnl::prop_kind::forward_inference,
                                                   dnnl::algorithm::lrn_across_channels, d, d, op.size,
                                                   static_cast<float>(op.alpha), static_cast<float>(op.beta),
                                                   static_cast<float>(op.bias), user_scratch());
        });
    if (pd)
      answers.offers.push_back(simple_offer<dnnl::lrn_forward>(
          v, *pd, layout, cost_of(v.machine(), Family::onednn_lrn, 0, bytes(v))));
  }
}

Verdict takes_layer(const NodeView& v, const LayerNormalization& op) {
  const auto x = v.dims(0);
  if (normalize_axis(op.axis, x.size(), "axis") + 1 != x.size())
    return Verdict::no("more than the last axis");
  const auto columns = x.back();
  if (columns > static_cast<std::int64_t>(kMostAdded))
    return Verdict::no("lines of {} numbers, of which it adds {} at most in floats", columns, kMostAdded);
  if (!v.all(ElementType::f32)) return Verdict::no("element types other than f32");
  for (std::size_t i = 1; i < v.inputs(); ++i)
    if (const auto dims = v.has(i) ? v.dims(i) : Dims{columns};
        dims.empty() || dims.back() != columns || static_cast<std::int64_t>(element_count(dims)) != columns)
      return Verdict::no("scale {}, wanted {} along the last axis", to_string(dims), columns);
  return Verdict::yes();
}

}  // namespace

void offer_normalization(const NodeView& v, Answers& answers) {
  if (const auto ok = f32_only(v); !ok) return answers.refuse("onednn", "{}", ok.reason());
  if (const auto* lrn = v.op<LRN>()) return offer_lrn(v, *lrn, answers);
  const auto* ln = v.op<LayerNormalization>();
  if (!ln) return answers.refuse("onednn", "no primitive for {}", v.node().op.name());
  if (const auto ok = takes_layer(v, *ln); !ok) return answers.refuse("onednn", "{}", ok.reason());
  const auto x = v.dims(0);
  const auto columns = x.back();
  const Dims rows{static_cast<std::int64_t>(element_count(x)) / columns, columns};
  const auto d = desc(rows, ElementType::f32, Layout::plain),
             one = desc({columns}, ElementType::f32, Layout::plain);
  auto flags = dnnl::normalization_flags::use_scale;
  if (v.has(2)) flags = flags | dnnl::normalization_flags::use_shift;
  const auto pd = try_create(answers, {Primitive::layer_normalization, v}, "layer normalization", [&] {
    return dnnl::layer_normalization_forward::primitive_desc(engine(), dnnl::prop_kind::forward_inference, d,
                                                             d, static_cast<float>(ln->epsilon), flags,
                                                             user_scratch());
  });
  if (!pd) return;
  Offer o = simple_offer<dnnl::layer_normalization_forward>(
      v, *pd, Layout::plain, cost_of(v.machine(), Family::onednn_layer_norm, 0, bytes(v)));
  o.consumed.clear();
  o.make = [pd = *pd, one, shift = v.has(2)](MakeContext&) {
    std::vector<Arg> args{{DNNL_ARG_SRC, pd.src_desc(), Arg::From::input, 0, {}},
                          {DNNL_ARG_DST, pd.dst_desc(), Arg::From::output, 0, {}},
                          {DNNL_ARG_SCALE, one, Arg::From::input, 1, {}}};
    if (shift) args.push_back({DNNL_ARG_SHIFT, one, Arg::From::input, 2, {}});
    return make_primitive(dnnl::layer_normalization_forward(pd), std::move(args), pd.scratchpad_desc());
  };
  answers.offers.push_back(std::move(o));
}

/// Only what is a pooling: reductions proper begin maximum and minimum with the lowest float, which loses
/// infinities, read as if aligned (SSE4.1), and are up to 20 times as slow as native ones on short lines.
void offer_mean(const NodeView& v, Answers& answers) {
  if (const auto ok = f32_only(v); !ok) return answers.refuse("onednn", "{}", ok.reason());
  const auto x = v.dims(0);
  const auto* axes = v.constant(1);
  if (v.machine().library == Isa::sse41)
    return answers.refuse("onednn", "its means for SSE4.1 want addresses that are multiples of 16");
  if (!axes || x.size() < 3 || x.size() > 5)
    return answers.refuse("onednn", "mean over axes that are not all spatial ones");
  std::vector<bool> flags(x.size(), false);
  for (auto a : to_ints(*axes)) flags[normalize_axis(a, x.size(), "axis")] = true;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (flags[i] != (i >= 2)) return answers.refuse("onednn", "mean over axes that are not all spatial ones");
  const Dims kernel(x.begin() + 2, x.end()), ones(kernel.size(), 1), zeros(kernel.size(), 0);
  if (element_count(kernel) > kMostAdded)
    return answers.refuse("onednn", "{} numbers, of which its means of floats add {} at most",
                          element_count(kernel), kMostAdded);
  Dims y(x.size(), 1);
  y[0] = x[0];
  y[1] = x[1];
  const auto pd = try_create(answers, {Primitive::pooling, v, Layout::channels_last}, "mean as pooling", [&] {
    return dnnl::pooling_forward::primitive_desc(
        engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::pooling_avg_exclude_padding,
        desc(x, ElementType::f32, Layout::channels_last), desc(y, ElementType::f32, Layout::channels_last),
        ones, kernel, zeros, zeros, zeros, user_scratch());
  });
  if (!pd) return;
  Offer o = simple_offer<dnnl::pooling_forward>(v, *pd, Layout::channels_last,
                                                cost_of(v.machine(), Family::onednn_pass, 0, bytes(v)));
  o.outputs = {Layout::plain};  // one element per channel: both layouts are the same bytes
  answers.offers.push_back(std::move(o));
}

namespace {

/// Each axis becomes a whole number of times as large, and that is the scale: one that is given counts as it
/// is, whatever size was made of it.
bool whole_factors(const NodeView& v, const Interpolate& op) {
  const auto x = v.dims(0), y = v.out_dims();
  for (std::size_t i = 2; i < x.size(); ++i)
    if (y[i] % x[i] != 0) return false;
  if (op.shape_calculation_mode == ShapeCalculationMode::sizes) return true;
  if (!v.constant(1) || (v.has(2) && !v.constant(2))) return false;
  const auto scales = to_floats(*v.constant(1));
  const auto axes = v.has(2) ? to_ints(*v.constant(2)) : Ints();
  for (std::size_t k = 0; k < scales.size(); ++k) {
    const auto i = v.has(2) ? normalize_axis(axes.at(k), x.size(), "axis") : k;
    if (scales[k] != static_cast<float>(y[i] / x[i])) return false;
  }
  return true;
}

}  // namespace

void offer_resampling(const NodeView& v, Answers& answers) {
  if (const auto ok = f32_only(v); !ok) return answers.refuse("onednn", "{}", ok.reason());
  const auto& op = *v.op<Interpolate>();
  const auto x = v.dims(0), y = v.out_dims();
  if (x.size() < 3 || x.size() > 5 || x[0] != y[0] || x[1] != y[1])
    return answers.refuse("onednn", "resizes batch or channels");
  for (auto p : op.pads_begin)
    if (p) return answers.refuse("onednn", "padding");
  for (auto p : op.pads_end)
    if (p) return answers.refuse("onednn", "padding");
  // oneDNN samples at half pixels with the factor out/in and rounds nearest as floor(x + 0.5) of (o + 0.5) f
  // - 0.5.
  const bool whole = whole_factors(v, op);
  const bool nearest = op.mode == InterpolateMode::nearest && whole &&
                       ((op.coordinate_transformation_mode == CoordinateMode::asymmetric &&
                         op.nearest_mode == NearestMode::floor) ||
                        (op.coordinate_transformation_mode == CoordinateMode::half_pixel &&
                         op.nearest_mode == NearestMode::round_prefer_floor) ||
                        (op.coordinate_transformation_mode == CoordinateMode::half_pixel &&
                         op.nearest_mode == NearestMode::round_prefer_ceil));
  const bool linear = op.mode == InterpolateMode::linear_onnx &&
                      op.coordinate_transformation_mode == CoordinateMode::half_pixel && !op.antialias &&
                      whole;
  if (!nearest && !linear) return answers.refuse("onednn", "resampling by other rules than oneDNN's");
  for (const auto layout : {Layout::channels_last, Layout::plain}) {
    const auto pd = try_create(
        answers, {Primitive::resampling, v, layout}, fmt::format("resampling {}", name_of(layout)), [&] {
          return dnnl::resampling_forward::primitive_desc(
              engine(), dnnl::prop_kind::forward_inference,
              nearest ? dnnl::algorithm::resampling_nearest : dnnl::algorithm::resampling_linear,
              desc(x, ElementType::f32, layout), desc(y, ElementType::f32, layout), user_scratch());
        });
    if (pd)
      answers.offers.push_back(simple_offer<dnnl::resampling_forward>(
          v, *pd, layout,
          cost_of(v.machine(), layout == Layout::plain ? Family::onednn_plain_resize : Family::onednn_pass, 0,
                  bytes(v))));
  }
}

}  // namespace lamina::onednn
