#include "kernels/native/binary/bits.h"

#include <limits>

#include "base/parallel.h"
#include "kernels/cost.h"
#include "ops/elementwise.h"
#include "ops/eval.h"

namespace lamina::bits {
namespace {

/// Calls visit(plain element, byte of the bits, bit of it) for all elements.
template <class Visit>
void for_all(const Dims& shape, const Visit& visit) {
  const auto elements = static_cast<std::int64_t>(element_count(shape));
  if (elements == 0) return;
  const std::int64_t channels = shape[1], points = elements / shape[0] / channels;
  for (std::int64_t image = 0, at = 0; image < shape[0]; ++image)
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t p = 0; p < points; ++p, ++at)
        visit(at, (image * points + p) * point_bytes(channels) + c / 8, c % 8);
}

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

Tensor packed(const Tensor& plain) {
  const auto& shape = plain.shape();
  Tensor out(
      ElementType::u8,
      {static_cast<std::int64_t>(memory_bytes(ElementType::boolean, shape, Layout::channels_last_bits))});
  auto* to = out.data<std::uint8_t>().data();
  for_all(shape, [&](auto element, auto byte, auto bit) {
    if (plain.raw()[element] != std::byte{0}) to[byte] = static_cast<std::uint8_t>(to[byte] | 1u << bit);
  });
  return out;
}

Tensor unpacked(const Tensor& bits, const Dims& shape) {
  Tensor out(ElementType::boolean, shape);
  for_all(shape, [&](auto element, auto byte, auto bit) {
    out.raw()[element] = bits.raw()[byte] >> bit & std::byte{1};
  });
  return out;
}

}  // namespace lamina::bits

namespace lamina {

void offer_comparison(const NodeView& v, Answers& answers) {
  using namespace bits;
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
  o.cost = cost_of(Family::vector_light, elements, 4 * elements);
  const auto grain = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(kWorthAThread * static_cast<double>(points) / o.cost));
  o.make = [=, limits = *limits](MakeContext& context) {
    const auto row = context.input_row(0) != 0 ? context.input_row(0) : channels;
    return executable([=, compare = compare()](const RunArgs& args) {
      parallel_for(points, grain, [&](std::int64_t begin, std::int64_t end) {
        compare({static_cast<const float*>(args.in[0]) + begin * row, row, end - begin, channels,
                 limits.data(), static_cast<std::uint8_t*>(args.out[0]) + begin * point_bytes(channels)});
      });
    });
  };
  answers.offers.push_back(std::move(o));
}

}  // namespace lamina
