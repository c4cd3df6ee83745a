#include "offline/option_names.h"

#include <algorithm>

namespace lamina {
namespace {

bool in_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/// The word of letters, digits and hyphens at the beginning.
std::string_view first_word(std::string_view text) {
  return text.substr(
      0, static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), in_word) - text.begin()));
}

}  // namespace

std::string with_fields(std::string_view text, const OptionFields& fields) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const auto word = first_word(text.substr(i));
    if (word.empty()) {
      out += text[i++];
      continue;
    }
    const auto field = std::find_if(fields.begin(), fields.end(), [&](auto& f) { return f.first == word; });
    out += field == fields.end() ? word : field->second;
    i += word.size();
  }
  return out;
}

}  // namespace lamina
