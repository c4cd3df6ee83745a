#pragma once
/// Numbers from text and back, the same in every locale.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>

namespace lamina {

/// The text as a whole number; nothing when it is anything else or does not fit T. One leading '+' is
/// accepted.
template <class T>
requires std::is_integral_v<T> std::optional<T> parse_integer(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

namespace detail {
inline bool equal_ignoring_case(std::string_view text, std::string_view lower) {
  if (text.size() != lower.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i)
    if ((text[i] | 0x20) != lower[i]) return false;
  return true;
}
}  // namespace detail

/// The text as the nearest T (float or double): decimal, with or without an exponent, "inf", "infinity",
/// "nan", in any case and with a sign. What is too large or too small for T becomes infinity or zero. Nothing
/// for anything else.
template <class T>
requires std::is_floating_point_v<T> std::optional<T> parse_real(std::string_view text) {
  bool negative = false;
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  T value{};
  if (detail::equal_ignoring_case(text, "inf") || detail::equal_ignoring_case(text, "infinity")) {
    value = std::numeric_limits<T>::infinity();
  } else if (detail::equal_ignoring_case(text, "nan")) {
    value = std::numeric_limits<T>::quiet_NaN();
  } else {
    if (text.empty() || !((text[0] >= '0' && text[0] <= '9') || text[0] == '.')) return std::nullopt;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (end != text.data() + text.size()) return std::nullopt;
    if (error == std::errc::result_out_of_range) {
      // Too large exactly when the exponent, with the digits before it, says so: a logarithm decides.
      const auto e = text.find_first_of("eE");
      const auto exponent =
          e == std::string_view::npos ? std::optional<long>(0) : parse_integer<long>(text.substr(e + 1));
      const auto digits = text.substr(0, e);
      const auto point = std::min(digits.find('.'), digits.size());
      const auto first = digits.find_first_not_of("0.");
      if (first == std::string_view::npos) return negative ? -T{0} : T{0};
      const bool negative_exponent = e != std::string_view::npos && e + 1 < text.size() && text[e + 1] == '-';
      const double shift = exponent ? static_cast<double>(*exponent) : (negative_exponent ? -1e18 : 1e18);
      const double magnitude = shift + static_cast<double>(point) - static_cast<double>(first);
      value = magnitude > 0 ? std::numeric_limits<T>::infinity() : T{0};
    } else if (error != std::errc()) {
      return std::nullopt;
    }
  }
  return negative ? -value : value;
}

/// The shortest text that parse_real<T> turns into the same value: "0.1", "1e-30", "inf", "nan".
template <class T>
requires std::is_floating_point_v<T> std::string shortest(T value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return fmt::format("{}", value);
}

}  // namespace lamina
