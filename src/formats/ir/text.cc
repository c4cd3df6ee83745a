#include "formats/ir/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace lamina::ir {
namespace {

constexpr double kExactLimit = 9007199254740992.0;  // 2^53: every integer up to here is a double

template <class T, class Parse>
std::optional<std::vector<T>> parse_list(std::string_view text, Parse parse) {
  std::vector<T> out;
  for (const auto piece : split_list(text)) {
    const auto value = parse(piece);
    if (!value) return std::nullopt;
    out.push_back(*value);
  }
  return out;
}

std::optional<std::int64_t> parse_digits(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<Dim> parse_dim(std::string_view text) {
  if (text == "?" || text == "-1") return Dim();
  const auto dots = text.find("..");
  if (dots == std::string_view::npos) {
    const auto size = parse_digits(text);
    if (!size || *size < 0) return std::nullopt;
    return Dim(*size);
  }
  const auto low = trim(text.substr(0, dots)), high = trim(text.substr(dots + 2));
  const auto from = low.empty() ? 0 : parse_digits(low);
  const auto to = high.empty() ? Dim::kUnbounded : parse_digits(high);
  if (!from || !to || *from < 0 || *to < *from) return std::nullopt;
  return Dim(*from, *to);
}

struct Spelling {
  std::string_view text;
  ElementType type;
};

constexpr std::array kPrecisions = {Spelling{"fp32", ElementType::f32}, Spelling{"fp16", ElementType::f16},
                                    Spelling{"fp64", ElementType::f64}, Spelling{"bin", ElementType::u1},
                                    Spelling{"bool", ElementType::boolean}};

constexpr std::array<std::string_view, 4> kForeign = {"u3", "u6", "string", "mxfp4"};

}  // namespace

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

bool same_word(std::string_view a, std::string_view b) {
  return a.size() == b.size() && lower(a) == lower(b);
}

std::vector<std::string_view> split_list(std::string_view text) {
  text = trim(text);
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']')
    text = trim(text.substr(1, text.size() - 2));
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const auto comma = text.find(',');
    out.push_back(trim(text.substr(0, comma)));
    if (comma == std::string_view::npos) break;
    text = trim(text.substr(comma + 1));
  }
  return out;
}

Strings split_names(std::string_view text) {
  Strings out(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] == ',')
      out.back() += text[++i];
    else if (text[i] == ',')
      out.emplace_back();
    else
      out.back() += text[i];
  }
  std::erase(out, std::string());
  return out;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  text = trim(text);
  if (const auto value = parse_digits(text)) return value;
  const auto real = parse_number(text);
  if (!real || std::abs(*real) > kExactLimit || *real != std::trunc(*real)) return std::nullopt;
  return static_cast<std::int64_t>(*real);
}

std::optional<double> parse_number(std::string_view text) {
  text = trim(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || text.empty()) return std::nullopt;
  if (error == std::errc::result_out_of_range && text.find("e-") != std::string_view::npos)
    return 0.0;  // too small
  if (error != std::errc()) return std::nullopt;
  return value;
}

std::optional<bool> parse_boolean(std::string_view text) {
  const std::string word = lower(trim(text));
  if (word == "true" || word == "1" || word == "yes" || word == "on") return true;
  if (word == "false" || word == "0" || word == "no" || word == "off") return false;
  return std::nullopt;
}

std::optional<Ints> parse_integers(std::string_view text) {
  return parse_list<std::int64_t>(text, parse_integer);
}
std::optional<Floats> parse_numbers(std::string_view text) { return parse_list<double>(text, parse_number); }

std::optional<ElementType> parse_element_type(std::string_view text) {
  const std::string word = lower(trim(text));
  if (word == "dynamic" || word == "unspecified") return ElementType::undefined;
  for (const auto& spelling : kPrecisions)
    if (spelling.text == word) return spelling.type;
  return element_type_named(word);
}

bool is_foreign_element_type(std::string_view text) {
  return std::find(kForeign.begin(), kForeign.end(), lower(trim(text))) != kForeign.end();
}

std::optional<Shape> parse_shape(std::string_view text) {
  if (trim(text) == "..." || trim(text) == "[...]") return Shape();
  const auto dims = parse_list<Dim>(text, parse_dim);
  if (!dims) return std::nullopt;
  return Shape(*dims);
}

}  // namespace lamina::ir
