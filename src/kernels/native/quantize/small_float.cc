/// Conversions between f32 and floats of 8 and 4 bits. Codes are made with f32 arithmetic of their own, not
/// with the interpreter's (base/small_float.cc).
#include "kernels/native/quantize/small_float.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>

#include "base/parallel.h"
#include "base/small_float.h"
#include "kernels/cost.h"
#include "kernels/family.h"
#include "kernels/native/offers.h"
#include "ops/elementwise.h"
#include "ops/quantization.h"

namespace lamina {
namespace {

constexpr std::int64_t kPiece = 1 << 14;  // elements of a unit, an even number

using Table = std::array<float, 256>;

Table table_of(ElementType type) {
  Table out{};
  for (int code = 0; code < 256; ++code)
    out[static_cast<std::size_t>(code)] = small_float_value(type, static_cast<std::uint8_t>(code));
  return out;
}

/// What an 8-bit format does with a number of f32.
struct Encoder {
  int mantissa_bits, bias;
  std::uint32_t largest;   ///< code of the largest number
  std::uint32_t overflow;  ///< code of what is beyond it
  std::uint32_t nan;
  bool minus_zero_is_nan;

  std::uint8_t operator()(float value) const {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = bits >> 31 << 7, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<std::uint8_t>(minus_zero_is_nan ? 0x80 : sign | nan);
    std::uint32_t code;
    if (magnitude >= static_cast<std::uint32_t>(128 - bias) << 23) {
      const int cut = 23 - mantissa_bits;
      const auto rounded = magnitude + ((1u << (cut - 1)) - 1) + (magnitude >> cut & 1u);
      code = (rounded - (static_cast<std::uint32_t>(127 - bias) << 23)) >> cut;
    } else {  // subnormal: the f32 adder rounds to the format's smallest step
      const auto ones = static_cast<std::uint32_t>(127 + 24 - bias - mantissa_bits) << 23;
      code =
          std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + std::bit_cast<float>(ones)) - ones;
    }
    if (code > largest) code = overflow;
    if (minus_zero_is_nan && (code == 0 || code == 0x80)) return static_cast<std::uint8_t>(code);
    return static_cast<std::uint8_t>(sign | code);
  }
};

std::optional<Encoder> encoder_of(ElementType type, bool saturate) {
  switch (type) {
    case ElementType::f8e4m3:
      return Encoder{3, 7, 0x7e, saturate ? 0x7eu : 0x7fu, 0x7f, false};
    case ElementType::f8e4m3fnuz:
      return Encoder{3, 8, 0x7f, saturate ? 0x7fu : 0x80u, 0x80, true};
    case ElementType::f8e5m2:
      return Encoder{2, 15, 0x7b, saturate ? 0x7bu : 0x7cu, 0x7e, false};
    case ElementType::f8e5m2fnuz:
      return Encoder{2, 16, 0x7f, saturate ? 0x7fu : 0x80u, 0x80, true};
    default:
      return std::nullopt;
  }
}

/// Calls f(first, end) for parts of all elements.
template <class F>
void each_part(const WorkPartition& all, std::int64_t count, const F& f) {
  parallel_for(all, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
    f(begin * kPiece, std::min(end * kPiece, count));
  });
}

void decode(const RunArgs& args, const Table& table, bool packed, const WorkPartition& all,
            std::int64_t count) {
  const auto* x = static_cast<const std::uint8_t*>(args.in[0]);
  auto* y = static_cast<float*>(args.out[0]);
  each_part(all, count, [&](std::int64_t first, std::int64_t end) {
    if (packed)
      for (auto i = first; i < end; ++i) y[i] = table[x[i / 2] >> (i % 2 * 4) & 15];
    else
      for (auto i = first; i < end; ++i) y[i] = table[x[i]];
  });
}

void encode(const RunArgs& args, const Encoder& encoder, const WorkPartition& all, std::int64_t count) {
  const auto* x = static_cast<const float*>(args.in[0]);
  auto* y = static_cast<std::uint8_t*>(args.out[0]);
  each_part(all, count, [&](std::int64_t first, std::int64_t end) {
    for (auto i = first; i < end; ++i) y[i] = encoder(x[i]);
  });
}

}  // namespace

void offer_small_float(const NodeView& v, Answers& answers) {
  const auto from = v.element(0), to = v.out_element();
  const bool reads = is_small_float(from) && to == ElementType::f32;
  if (!is_small_float(from) && !is_small_float(to)) return;  // for others
  const auto* own = v.node().op.as<ConvertSmallFloat>();
  const auto encoder = from == ElementType::f32 ? encoder_of(to, !own || own->saturate) : std::nullopt;
  if (!reads && !encoder) return answers.refuse("native", "from {} to {}", name_of(from), name_of(to));
  const auto count = static_cast<std::int64_t>(element_count(v.dims(0)));
  const bool packed = bits_of(from) < 8;
  for (const auto layout : {Layout::plain, Layout::channels_last}) {
    if (layout == Layout::channels_last && (packed || v.rank(0) < 3)) continue;
    Offer o(v, "native_small_float", layout);
    o.cost = cost_of(v.machine(), Family::vector_light, (reads ? 2.0 : 8.0) * static_cast<double>(count),
                     5.0 * static_cast<double>(count));
    const auto all = partitioned_here(ceil_div(count, kPiece), o.cost.us());
    if (reads)
      o.make = [table = table_of(from), packed, all, count](MakeContext&) {
        return executable([=](const RunArgs& args) { decode(args, table, packed, all, count); });
      };
    else
      o.make = [encoder = *encoder, all, count](MakeContext&) {
        return executable([=](const RunArgs& args) { encode(args, encoder, all, count); });
      };
    answers.offers.push_back(std::move(o));
  }
}

}  // namespace lamina
