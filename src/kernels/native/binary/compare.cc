#include "kernels/native/binary/compare.h"

#include <limits>

#include "base/parallel.h"
#include "kernels/cost.h"
#include "kernels/family.h"
#include "kernels/native/offers.h"
#include "ops/elementwise.h"
#include "ops/eval.h"

namespace lamina {
namespace {

using bits::point_bytes;

/// Where each channel's sign changes: numbers of all channels and infinities behind them; nothing when the
/// node compares otherwise.
std::optional<std::vector<float>> limits_of(const NodeView& v) {
  const auto* limit = v.constant(1);
  const auto dims = v.dims(0);
  if (!limit || v.element(0) != ElementType::f32 || v.element(1) != ElementType::f32 || dims.size() < 3 ||
      v.constant(0) || dims != v.out_dims() || element_count(dims) == 0 || limit->rank() > dims.size())
    return std::nullopt;
  const auto channels = static_cast<std::size_t>(dims[1]);
  for (std::size_t i = 0; i < limit->rank(); ++i)
    if (limit->shape()[i] != 1 && dims.size() - limit->rank() + i != 1) return std::nullopt;
  const auto values = to_floats(*limit);
  std::vector<float> limits(static_cast<std::size_t>(8 * point_bytes(dims[1])),
                            std::numeric_limits<float>::infinity());
  for (std::size_t c = 0; c < channels; ++c) limits[c] = values[values.size() == 1 ? 0 : c];
  return limits;
}

}  // namespace

void offer_comparison(const NodeView& v, Answers& answers) {
  const auto limits = limits_of(v);
  if (!limits || v.out_element() != ElementType::boolean) return;
  const auto dims = v.dims(0);
  const std::int64_t channels = dims[1], points = static_cast<std::int64_t>(element_count(dims)) / channels;
  const auto elements = static_cast<double>(points * channels);
  Offer o;
  o.label = "native_compare_to_bits";
  o.inputs = {Layout::channels_last, Layout::plain};
  o.outputs = {Layout::channels_last_bits};
  o.consumed = {1};
  o.wide_inputs = {0};
  o.cost = cost_of(v.machine(), Family::vector_light, elements, 4 * elements);
  const auto all = partitioned_here(points, o.cost.us());
  o.make = [=, limits = *limits](MakeContext& context) {
    const auto in = context.input(0, {ElementType::f32, Layout::channels_last, channels});
    const Rows out(ElementType::boolean, Layout::channels_last_bits, channels);
    return executable([=, compare = bits::compare()](const RunArgs& args) {
      parallel_for(all, [&](std::int64_t begin, std::int64_t end) {
        compare({in.at<const float>(args.in[0], begin), in.step, end - begin, channels, limits.data(),
                 out.at<std::uint8_t>(args.out[0], begin)});
      });
    });
  };
  answers.offers.push_back(std::move(o));
}

}  // namespace lamina
