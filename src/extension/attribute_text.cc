#include "extension/attribute_text.h"

#include <algorithm>

#include "base/numbers.h"
#include "lamina/extension.h"

namespace lamina {
namespace {

template <class T>
std::optional<std::vector<T>> split(std::string_view text, const auto& one) {
  std::vector<T> out;
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    auto word = text.substr(0, comma);
    while (!word.empty() && word.front() == ' ') word.remove_prefix(1);
    while (!word.empty() && word.back() == ' ') word.remove_suffix(1);
    const auto value = one(word);
    if (!value) return std::nullopt;
    out.push_back(*value);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return out;
}

template <class T>
std::optional<Attribute> as_attribute(const std::optional<T>& value) {
  return value ? std::optional<Attribute>(*value) : std::nullopt;
}

std::optional<bool> boolean_of(std::string_view text) {
  for (const auto word : {"true", "1", "yes", "True", "TRUE"})
    if (text == word) return true;
  for (const auto word : {"false", "0", "no", "False", "FALSE"})
    if (text == word) return false;
  return std::nullopt;
}

}  // namespace

std::optional<Attribute> attribute_of_text(std::int32_t kind, std::string_view text) {
  const auto integer = [](std::string_view t) { return parse_integer<std::int64_t>(t); };
  const auto real = [](std::string_view t) { return parse_real<double>(t); };
  switch (kind) {
    case LAMINA_BOOL:
      return as_attribute(boolean_of(text));
    case LAMINA_INT:
      return as_attribute(integer(text));
    case LAMINA_FLOAT:
      return as_attribute(real(text));
    case LAMINA_STRING:
      return Attribute(std::string(text));
    case LAMINA_INTS:
      return as_attribute(split<std::int64_t>(text, integer));
    case LAMINA_FLOATS:
      return as_attribute(split<double>(text, real));
    case LAMINA_STRINGS:
      return as_attribute(
          split<std::string>(text, [](std::string_view t) { return std::optional(std::string(t)); }));
    default:
      return std::nullopt;
  }
}

std::string_view name_of_kind(std::int32_t kind) {
  constexpr std::string_view names[] = {
      "",        "true or false",      "an integer",        "a number",
      "a text",  "a list of integers", "a list of numbers", "a list of texts",
      "a tensor"};
  return kind >= LAMINA_BOOL && kind <= LAMINA_TENSOR ? names[kind] : "known";
}

std::optional<Attribute> attribute_like(const Attribute& like, std::string_view text) {
  if (std::holds_alternative<ElementType>(like)) return as_attribute(element_type_named(text));
  // Kinds in the order of the variant.
  constexpr std::int32_t kinds[] = {LAMINA_BOOL, LAMINA_INT,    LAMINA_FLOAT,  LAMINA_STRING,
                                    LAMINA_INTS, LAMINA_FLOATS, LAMINA_STRINGS};
  return like.index() < std::size(kinds) ? attribute_of_text(kinds[like.index()], text) : std::nullopt;
}

}  // namespace lamina
