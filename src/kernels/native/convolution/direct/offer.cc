/// Convolutions, transposed ones too, as products whose rows are output points (gemm/product.h): k runs over
/// the taps of the window and the input channels, read where they lie. Points whose window reaches over the
/// border are regions of their own, so that nothing is padded and no zero is multiplied. Reads channels-last
/// or plain tensors, writes channels-last ones.
#include "kernels/native/offers.h"

#include <algorithm>

#include "base/cpu.h"
#include "base/parallel.h"
#include "kernels/cost.h"
#include "kernels/family.h"
#include "kernels/native/convolution/direct/source.h"
#include "kernels/native/gemm/bias.h"
#include "kernels/native/gemm/product.h"
#include "ops/convolution.h"

namespace lamina {
namespace {

using convolutions::kLongestAxis;
using convolutions::kMostRegions;
using convolutions::packed_weights;
using convolutions::regions_of;
using convolutions::run_length;
using convolutions::Source;
using convolutions::source_of;
using gemm::Product;
using windows::Geometry;

Product product_of(const Machine& machine, const Geometry& g, const Source& s, const Epilogue& epilogue,
                   std::int64_t threads) {
  Product p(machine, g.taps() * (g.inputs / g.groups), g.outputs / g.groups, run_length(g, s));
  p.epilogue = epilogue;
  convolutions::add_regions(g, s, threads, p);
  return p;
}

/// Transposed windows that lie side by side along the width: what a point gives to its outputs lies together
/// there, so that these taps become columns.
std::int64_t taps_as_columns(const Geometry& g) {
  const bool beside = g.transposed && g.groups == 1 && g.kernel[2] == g.stride[2] && g.dilation[2] == 1 &&
                      g.pad[2] == 0 && g.out[2] == g.in[2] * g.kernel[2];
  return beside ? g.kernel[2] : 1;
}

Geometry with_columns(Geometry g, std::int64_t taps) {
  if (taps == 1) return g;
  g.outputs *= taps;
  g.out[2] = g.in[2];
  g.kernel[2] = g.stride[2] = 1;
  return g;
}

struct Convolved {
  Product product;
  Tensor weights, bias;
};

void run(const Convolved& c, const RunArgs& args) {
  gemm::Operands o{};
  o.a = static_cast<const float*>(args.in[0]);
  o.b = c.weights.data<float>().data();
  o.bias = c.bias.valid() ? c.bias.data<float>().data() : nullptr;
  o.add = c.product.epilogue.add_at(args, 0);
  o.c = args.out[0];
  o.inputs = args.in;
  o.apart = static_cast<std::byte*>(args.scratch);
  gemm::run(c.product, o);
}

/// What moving the tensors costs.
Cost bytes_cost(const NodeView& v, Family family) {
  if (element_count(v.out_dims()) == static_cast<std::size_t>(v.out_dims()[1]))
    return {};  // counted by the product
  const auto floats = element_count(v.dims(0)) + element_count(v.dims(1)) + element_count(v.out_dims());
  return cost_of(v.machine(), family, 0, 4.0 * static_cast<double>(floats), 0);
}

Verdict takes_direct(const NodeView& v) {
  if (!v.all(ElementType::f32)) return Verdict::no("element types other than f32");
  const auto rank = v.rank(0);
  if (rank < 3 || rank > 5) return Verdict::no("rank {}, wanted 3 to 5", rank);
  if (!v.constant(1)) return Verdict::no("weights are not constant");
  if (v.has(2) && !v.constant(2)) return Verdict::no("bias is not constant");
  if (v.op<Convolution>() && (v.has(3) || v.has(4))) return Verdict::no("zero points");
  if (element_count(v.out_dims()) == 0 || element_count(v.dims(0)) == 0 || element_count(v.dims(1)) == 0)
    return Verdict::no("empty tensors");
  for (std::size_t i = 2; i < rank; ++i)
    if (v.out_dims()[i] > kLongestAxis) return Verdict::no("{} outputs along an axis", v.out_dims()[i]);
  return Verdict::yes();
}

}  // namespace

void offer_native_convolution(const NodeView& v, Answers& answers) {
  if (const auto verdict = takes_direct(v); !verdict) return answers.refuse("native", "{}", verdict.reason());
  std::string why;
  const auto epilogue = Epilogue::of(v, Layout::channels_last, why);
  if (!epilogue) return answers.refuse("native", "{}", why);
  const Geometry g = windows::geometry_of(v);
  if (!g.transposed && g.groups > 1 && g.groups == g.inputs && g.groups == g.outputs)
    return answers.refuse("native", "a depthwise convolution");
  if (const auto n = regions_of(g); n > kMostRegions)
    return answers.refuse("native", "{} regions of planes and borders, wanted at most {}", n, kMostRegions);
  for (const auto layout : {Layout::channels_last, Layout::plain}) {
    const bool plain = layout == Layout::plain;
    if (plain && (g.transposed || g.inputs / g.groups > 4)) continue;  // k would be scattered
    const auto columns = taps_as_columns(g);
    const Geometry h = with_columns(g, columns);
    auto behind = *epilogue;
    for (auto* rows : {&behind.out, &behind.added}) *rows = {rows->element, rows->layout, h.outputs};
    const auto in = Rows::of(ElementType::f32, v.dims(0), layout);
    const auto threads = threads_here();
    const auto product = product_of(v.machine(), h, source_of(h, in), behind, threads);
    Offer o;
    o.label = fmt::format("native_{}_{}_f32", g.kind(), name_of(v.machine().isa()));
    behind.add_to(o, v);
    if (columns != 1) o.wide_inputs = o.wide_outputs = {};
    o.inputs[0] = layout;
    o.consumed.push_back(1);
    o.packed = {1};
    if (v.has(2)) o.consumed.push_back(2);
    if (g.transposed && v.has(3)) o.consumed.push_back(3);
    const auto family = g.pointwise() ? Family::native_gemm : Family::native_direct;
    o.cost += product.cost(family) + bytes_cost(v, family);
    // Sums apart have room for this partition of the work, and slices may be divided otherwise.
    if (!plain && !behind.apart()) o.wide_inputs.push_back(0);
    o.scratch = static_cast<std::size_t>(product.scratch_bytes());
    o.make = [&machine = v.machine(), g, h, columns, in, behind, threads, weights = *v.constant(1),
              bias = gemm::bias_of(v)](MakeContext& context) -> std::unique_ptr<Executable> {
      auto laid = behind;
      laid.lay(context);
      Convolved c{product_of(machine, h, source_of(h, context.input(0, in)), laid, threads), {}, {}};
      c.bias = gemm::padded_bias(bias, g.groups, c.product.panels.columns, c.product.panels.padded_columns(),
                                 context.weights);
      c.weights = packed_weights(weights, g, columns, c.product, in.layout == Layout::plain, context.weights);
      return executable([c = std::move(c)](const RunArgs& args) { run(c, args); });
    };
    answers.offers.push_back(std::move(o));
  }
}

}  // namespace lamina
