#include "base/option_words.h"

#include <algorithm>

#include "base/element_types.h"
#include "base/error.h"
#include "base/numbers.h"
#include "base/words.h"

namespace lamina {
namespace {

constexpr std::string_view kRest = "...";

std::optional<std::int64_t> size_of(std::string_view word) {
  const auto n = parse_integer<std::int64_t>(word);
  return n && *n >= 0 ? n : std::nullopt;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::optional<std::string_view> in_brackets(std::string_view text) {
  if (text.size() < 2 || (text.front() != '[' && text.front() != '(')) return std::nullopt;
  if (text.back() != (text.front() == '[' ? ']' : ')')) return std::nullopt;
  return text.substr(1, text.size() - 2);
}

std::optional<Dimension> size_said(std::string_view word) {
  if (word == "?" || word == "-1") return Dimension();
  const auto dots = word.find("..");
  if (dots == std::string_view::npos) {
    const auto size = size_of(word);
    return size ? std::optional<Dimension>(*size) : std::nullopt;
  }
  const auto low = word.substr(0, dots), high = word.substr(dots + 2);
  const auto least = low.empty() ? std::optional<std::int64_t>(0) : size_of(low);
  const auto most = high.empty() ? std::optional(Dimension::kUnbounded) : size_of(high);
  if (!least || !most || *least > *most) return std::nullopt;
  return Dimension(*least, *most);
}

std::optional<ElementType> element_type_said(std::string_view word) {
  auto name = lower_case(trimmed(word));
  if (name.starts_with("fp")) name.erase(1, 1);
  if (name == "bool") name = "boolean";
  const auto type = element_type_named(name);
  return type && *type != ElementType::undefined ? type : std::nullopt;
}

std::string layout_letters(const std::string& what, std::string_view layout) {
  layout = trimmed(layout);
  if (const auto list = in_brackets(layout)) layout = *list;
  std::string letters;
  for (const char c : upper_case(layout))
    if (c != ',' && c != ' ') letters += c == '*' ? std::string(kRest) : std::string(1, c);
  auto plain = letters;
  if (const auto rest = plain.find(kRest); rest != std::string::npos) plain.erase(rest, kRest.size());
  const auto is_letter = [](char c) { return c >= 'A' && c <= 'Z'; };
  if (!std::all_of(plain.begin(), plain.end(), [&](char c) { return is_letter(c) || c == '?'; }))
    fail(ErrorCode::bad_option, "{}: \"{}\" is no layout, wanted letters, ? and ..., such as nchw", what,
         layout);
  for (const char c : plain)
    if (is_letter(c) && std::count(plain.begin(), plain.end(), c) > 1)
      fail(ErrorCode::bad_option, "{}: {} occurs twice", what, c);
  return letters;
}

std::optional<std::string> spread_layout(std::string letters, std::size_t rank) {
  if (const auto rest = letters.find(kRest); rest != std::string::npos) {
    const auto others = letters.size() - kRest.size();
    letters.replace(rest, kRest.size(), rank > others ? rank - others : 0, '?');
  }
  return letters.size() == rank ? std::optional(letters) : std::nullopt;
}

std::string_view bare_key(std::string_view key) {
  if (key.starts_with("KEY_")) key.remove_prefix(4);
  return key;
}

}  // namespace lamina
