#include "kernels/native/integer/operands.h"

#include <algorithm>

#include "base/element_types.h"
#include "base/hash.h"
#include "kernels/zero_points.h"

namespace lamina::integers {
namespace {

using gemm::Arithmetic;

struct Range {
  std::int32_t low = 0, high = 0;
};

/// Range of weights less their zero points.
Range range_of(const Tensor& weights, const Operands& o, std::int64_t per_column) {
  const bool several = o.weight_zeros.size() > 1;
  if (several && per_column == 0) {
    const Range type = o.weights == ElementType::i8 ? Range{-128, 127} : Range{0, 255};
    const auto [least, most] = std::minmax_element(o.weight_zeros.begin(), o.weight_zeros.end());
    return {type.low - *most, type.high - *least};
  }
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(weights.raw());
  const auto count = static_cast<std::int64_t>(weights.size()), part = several ? per_column : count;
  const std::uint8_t flip = o.weights == ElementType::i8 ? 128 : 0;  // compared as unsigned bytes
  Range all{INT32_MAX, INT32_MIN};
  for (std::int64_t begin = 0; begin < count; begin += part) {
    std::uint8_t low = 255, high = 0;
    for (auto i = begin; i < std::min(begin + part, count); ++i) {
      const auto w = static_cast<std::uint8_t>(bytes[i] ^ flip);
      low = std::min(low, w), high = std::max(high, w);
    }
    const auto less = o.zero_of_column(begin / part) + flip;
    all = {std::min(all.low, low - less), std::max(all.high, high - less)};
  }
  return all;
}

bool takes(Arithmetic a, const Range& weights) {
  switch (a) {
    case Arithmetic::small_quads:  // 255 * (64 + 64) is below 2^15
      return weights.low >= -64 && weights.high <= 64;
    case Arithmetic::quads:
    case Arithmetic::pairs:
      return weights.low >= -128 && weights.high <= 127;
    default:
      return true;
  }
}

/// Arithmetics are in the order of their speed, but that pairs of more bits are slower.
bool better(Arithmetic a, Arithmetic b) {
  const auto rank = [](Arithmetic x) { return x == Arithmetic::wide_pairs ? -1 : static_cast<int>(x); };
  return rank(a) > rank(b);
}

/// What there may be, the best last.
std::vector<Arithmetic> arithmetics(const NodeView& v, const Operands& o) {
  if (o.weights == ElementType::i16) return {Arithmetic::wide_pairs};
  const bool bytes = o.weights == ElementType::i8 && o.weight_zeros.empty(),
             vnni = gemm::multiplies_quads(v.machine());
  std::vector<Arithmetic> list;
  if (!bytes) list.push_back(Arithmetic::wide_pairs);
  if (!bytes && !v.constant(1)) return list;
  list.push_back(vnni ? Arithmetic::quads : Arithmetic::pairs);
  if (!vnni && v.constant(1)) list.push_back(Arithmetic::small_quads);
  return list;
}

}  // namespace

std::int32_t Operands::zero(const void* input) const {
  if (!zero_at_run) return source_zero;
  const auto byte = *static_cast<const std::uint8_t*>(input);
  return signed_source ? static_cast<std::int8_t>(byte) : byte;
}

std::string Operands::label(const Machine& machine) const {
  return fmt::format("{}{}_int8", name_of(machine.isa()), arithmetic == Arithmetic::quads ? "_vnni" : "");
}

std::string Operands::weights_key() const {
  const auto bytes = std::as_bytes(std::span(weight_zeros));
  return fmt::format("{} {}", name_of(weights),
                     weight_zeros.size() < 2 ? std::to_string(zero_of_column(0)) : to_string(hash_of(bytes)));
}

std::string Operands::key() const {
  return fmt::format("{} {}", static_cast<int>(arithmetic), weights_key());
}

std::vector<Operands> operands_of(const NodeView& v, std::int64_t columns, std::string& why) {
  const auto no = [&]<class... A>(fmt::format_string<A...> text, A&&... args) {
    why = fmt::format(text, std::forward<A>(args)...);
    return std::vector<Operands>();
  };
  if (!is_byte(v.element(0))) return no("operands of {}, wanted u8 or i8", name_of(v.element(0)));
  if (!is_byte(v.element(1)) && !(v.element(1) == ElementType::i16 && v.constant(1)))
    return no("weights of {}, wanted u8, i8 or constant ones of i16", name_of(v.element(1)));
  if (v.has(2)) return no("a bias of integers");
  Operands o;
  o.signed_source = v.element(0) == ElementType::i8;
  o.weights = v.element(1);
  ZeroPoints zeros;
  if (const auto verdict = zero_points_of(v, zeros); !verdict) return no("{}", verdict.reason());
  if (zeros.weights_at_run) return no("zero points of weights that are given at run time");
  const auto count = static_cast<std::int64_t>(zeros.weights.size());
  if (count > 0 && o.weights == ElementType::i16) return no("zero points of weights of i16");
  if (count > 1 && count != columns) return no("{} zero points of weights for {} columns", count, columns);
  o.source_zero = zeros.source;
  o.zero_at_run = zeros.source_at_run;
  o.weight_zeros = zeros.weights;
  std::vector<Operands> possible;
  for (const auto arithmetic : arithmetics(v, o)) {
    o.arithmetic = arithmetic;
    possible.insert(possible.begin(), o);
  }
  // Few models have weights of 7 bits, and those with a zero point have that for weights to fit.
  if (possible.front().arithmetic == Arithmetic::small_quads) std::swap(possible[0], possible[1]);
  return possible;
}

std::optional<Operands> matched_quads(const NodeView& v, const Operands& operands) {
  if (!v.constant(1) || operands.weights == ElementType::i16 || gemm::multiplies_quads(v.machine()))
    return std::nullopt;
  auto o = operands;
  o.arithmetic = Arithmetic::matched_quads;
  return o;
}

Operands operands_for(const std::vector<Operands>& possible, const Tensor& weights, std::int64_t per_column,
                      WeightStore& store) {
  if (possible.size() == 1) return possible.front();
  const auto& any = possible.front();
  const auto found =
      store.moved(weights, fmt::format("native_integer_range {} {}", any.weights_key(), per_column),
                  {ElementType::i32, 2}, [&](const Tensor& t) {
                    const auto range = range_of(t, any, per_column);
                    return Tensor::of({2}, std::vector<std::int32_t>{range.low, range.high});
                  });
  const Range range{found.data<std::int32_t>()[0], found.data<std::int32_t>()[1]};
  const Operands* best = nullptr;
  for (const auto& o : possible)
    if (takes(o.arithmetic, range) && (!best || better(o.arithmetic, best->arithmetic))) best = &o;
  return *best;
}

}  // namespace lamina::integers
