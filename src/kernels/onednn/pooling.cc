/// Average pooling, f32 and bf16.
#include "ops/pooling.h"

#include <algorithm>

#include "kernels/onednn/onednn.h"
#include "kernels/onednn_isa.h"

namespace lamina::onednn {
namespace {

struct PoolWindow {
  Dims strides, kernel, dilations, left, right;
};

/// Most elements of a window: oneDNN's kernels count them in 32 bits.
constexpr std::int64_t kLargestWindow = 1 << 24;

/// Right pads follow from the output's size, so that ceil rounding needs no special case.
Verdict window(const Window& op, const Ints& kernel, const Dims& x, const Dims& y, PoolWindow& out) {
  const std::vector<Dim> spatial(x.begin() + 2, x.end());
  const auto r = resolve(op, spatial, kernel);
  out = {r.strides, kernel, r.dilations, r.pads_begin, {}};
  std::int64_t elements = 1;
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    const auto extent = (kernel[i] - 1) * r.dilations[i] + 1;
    const auto right = (y[i + 2] - 1) * r.strides[i] + extent - x[i + 2] - out.left[i];
    if (kernel[i] > kLargestWindow / elements) return Verdict::no("a window of {}", kernel[i]);
    elements *= kernel[i];
    if (out.left[i] >= extent || right >= extent)
      return Verdict::no("pads of {} and {} for a window of {}", out.left[i], right, extent);
    out.right.push_back(right);
    --out.dilations[i];
    if (out.dilations[i] != 0) return Verdict::no("dilated pooling");
  }
  return Verdict::yes();
}

Verdict takes(const NodeView& v, PoolWindow& w) {
  const auto type = v.element(0);
  if (type != ElementType::f32 && (type != ElementType::bf16 || !multiplies_bf16(v.machine())))
    return Verdict::no("element types other than f32, and bf16 where there are instructions for it");
  if (v.all(type) == false) return Verdict::no("its means are of another type");
  if (v.op<MaxPool>()) return Verdict::no("its maximum makes a number of NaN");
  const auto x = v.dims(0), y = v.out_dims();
  if (x.size() < 3 || x.size() > 5) return Verdict::no("rank {}", x.size());
  if (element_count(x) == 0 || element_count(y) == 0) return Verdict::no("empty tensors");
  const auto& avg = *v.op<AvgPool>();
  if (element_count(avg.kernel) > kMostAdded &&
      element_count(x) / static_cast<std::size_t>(x[0] * x[1]) > kMostAdded)
    return Verdict::no("windows of {} numbers, of which its means of floats add {} at most",
                       element_count(avg.kernel), kMostAdded);
  // Tensors of callers and parts of other tensors may begin at any element.
  if (v.machine().library == Isa::sse41)
    return Verdict::no("its means for SSE4.1 want addresses that are multiples of 16");
  if (auto verdict = window(avg, avg.kernel, x, y, w); !verdict || avg.exclude_pad) return verdict;
  for (std::size_t i = 0; i < w.right.size(); ++i) {
    const auto declared = resolve(avg, std::vector<Dim>(x.begin() + 2, x.end()), avg.kernel).pads_end[i];
    if (w.right[i] > declared) return Verdict::no("windows beyond the padding do not count there");
  }
  return Verdict::yes();
}

}  // namespace

void offer_pooling(const NodeView& v, Answers& answers) {
  PoolWindow w;
  if (const auto verdict = takes(v, w); !verdict) return answers.refuse("onednn", "{}", verdict.reason());
  if (epilogue_size(v.node()) != 0) answers.refuse("onednn", "pooling takes no epilogue here");
  const auto x = v.dims(0), y = v.out_dims();
  const auto type = v.element(0);
  const auto& avg = *v.op<AvgPool>();
  const auto algorithm = avg.exclude_pad ? dnnl::algorithm::pooling_avg_exclude_padding
                                         : dnnl::algorithm::pooling_avg_include_padding;
  const Geometry geometry{w.strides, w.dilations, w.left, w.right};
  for (const auto layout : {Layout::channels_last, Layout::plain}) {
    const Asked asked{.primitive = Primitive::pooling, .node = v, .layout = layout, .window = &geometry};
    const auto pd = try_create(answers, asked, fmt::format("pooling {}", name_of(layout)), [&] {
      return dnnl::pooling_forward::primitive_desc(engine(), dnnl::prop_kind::forward_inference, algorithm,
                                                   desc(x, type, layout), desc(y, type, layout), w.strides,
                                                   w.kernel, w.dilations, w.left, w.right, user_scratch());
    });
    if (!pd) continue;
    Offer o(v, label(v.machine(), pd->impl_info_str(), name_of(type)), layout);
    o.stages = 0;
    o.scratch = pd->scratchpad_desc().get_size();
    const double moved = bits_of(type) / 8 * static_cast<double>(element_count(x) + element_count(y));
    if (std::string_view(pd->impl_info_str()).starts_with("simple_nchw"))  // element by element
      o.cost = cost_of(v.machine(), Family::scalar,
                       static_cast<double>(element_count(y) * element_count(avg.kernel)));
    else
      o.cost = cost_of(v.machine(), layout == Layout::plain ? Family::onednn_plain_pool : Family::onednn_pass,
                       0, moved);
    o.make = [pd = *pd](MakeContext&) {
      return make_primitive(dnnl::pooling_forward(pd),
                            {{DNNL_ARG_SRC, pd.src_desc(), Arg::From::input, 0, {}},
                             {DNNL_ARG_DST, pd.dst_desc(), Arg::From::output, 0, {}}},
                            pd.scratchpad_desc());
    };
    answers.offers.push_back(std::move(o));
  }
}

}  // namespace lamina::onednn
