#include "graph/text_element.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "base/numbers.h"
#include "base/small_float.h"

namespace lamina::text {
namespace {

/// Bits of the NaN that "nan" stands for.
std::uint64_t usual_nan(ElementType type) {
  switch (type) {
    case ElementType::f16:
      return 0x7e00;
    case ElementType::bf16:
      return 0x7fc0;
    case ElementType::f32:
      return 0x7fc00000;
    case ElementType::f8e4m3:
      return 0x7f;
    case ElementType::f8e5m2:
      return 0x7e;
    case ElementType::f8e4m3fnuz:
    case ElementType::f8e5m2fnuz:
      return 0x80;
    case ElementType::f8e8m0:
      return 0xff;
    default:
      return 0x7ff8000000000000;
  }
}

std::uint64_t element_bits(const Tensor& t, std::size_t i) {
  const auto bits = static_cast<std::size_t>(bits_of(t.element_type()));
  if (bits < 8)
    return (std::to_integer<std::uint64_t>(t.raw()[i * bits / 8]) >> (i * bits % 8)) & ((1u << bits) - 1);
  std::uint64_t out = 0;
  std::memcpy(&out, t.raw() + i * (bits / 8), bits / 8);
  return out;
}

std::optional<std::uint64_t> parse_float(std::string_view token, ElementType type) {
  if (token.starts_with("nan(0x") && token.ends_with(')')) {
    std::uint64_t bits = 0;
    const auto hex = token.substr(6, token.size() - 7);
    const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), bits, 16);
    const bool fits = bits_of(type) == 64 || bits >> bits_of(type) == 0;
    if (error != std::errc() || end != hex.data() + hex.size() || !fits) return std::nullopt;
    return bits;
  }
  if (type == ElementType::f64) {
    const auto v = parse_real<double>(token);
    return v ? std::optional(std::bit_cast<std::uint64_t>(*v)) : std::nullopt;
  }
  const auto v = parse_real<float>(token);
  if (!v) return std::nullopt;
  if (is_small_float(type)) return small_float_code(type, double{*v}, {.saturate = false});
  if (std::isnan(*v)) return usual_nan(type);
  if (type == ElementType::f16) return to_f16(*v).bits;
  if (type == ElementType::bf16) return to_bf16(*v).bits;
  return std::bit_cast<std::uint32_t>(*v);
}

std::optional<std::uint64_t> parse_whole(std::string_view token, ElementType type) {
  const int bits = bits_of(type);
  if (!is_signed(type)) {
    const auto v = parse_integer<std::uint64_t>(token);
    return v && (bits == 64 || *v >> bits == 0) ? v : std::nullopt;
  }
  const auto v = parse_integer<std::int64_t>(token);
  const auto limit = std::int64_t{1} << (bits - 1 - (bits == 64));
  if (!v || (bits < 64 && (*v < -limit || *v >= limit))) return std::nullopt;
  return static_cast<std::uint64_t>(*v) & (~0ull >> (64 - bits));
}

}  // namespace

void put_bits(Tensor& t, std::size_t i, std::uint64_t value) {
  const auto bits = static_cast<std::size_t>(bits_of(t.element_type()));
  if (bits < 8)
    t.raw()[i * bits / 8] |= static_cast<std::byte>(value << (i * bits % 8));
  else
    std::memcpy(t.raw() + i * (bits / 8), &value, bits / 8);
}

std::string float_text(ElementType type, std::uint64_t bits) {
  std::string out;
  if (is_small_float(type))
    out = shortest(small_float_value(type, static_cast<std::uint8_t>(bits)));
  else
    switch (type) {
      case ElementType::f16:
        out = shortest(to_float(f16_t{static_cast<std::uint16_t>(bits)}));
        break;
      case ElementType::bf16:
        out = shortest(to_float(bf16_t{static_cast<std::uint16_t>(bits)}));
        break;
      case ElementType::f32:
        out = shortest(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
        break;
      default:
        out = shortest(std::bit_cast<double>(bits));
    }
  return out == "nan" && bits != usual_nan(type) ? fmt::format("nan(0x{:x})", bits) : out;
}

std::string element_text(const Tensor& t, std::size_t i) {
  const auto type = t.element_type();
  const auto bits = element_bits(t, i);
  if (is_float(type)) return float_text(type, bits);
  if (type == ElementType::boolean && bits < 2) return bits ? "true" : "false";
  if (!is_signed(type)) return std::to_string(bits);
  const int unused = 64 - bits_of(type);
  return std::to_string(static_cast<std::int64_t>(bits << unused) >> unused);
}

std::optional<std::uint64_t> parse_bits(std::string_view token, ElementType type) {
  if (is_float(type)) return parse_float(token, type);
  if (type == ElementType::boolean && (token == "true" || token == "false")) return token == "true";
  return parse_whole(token, type);
}

}  // namespace lamina::text
