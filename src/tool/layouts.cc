#include "tool/layouts.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/words.h"
#include "tool/common.h"
#include "tool/named_lists.h"

namespace lamina::tool {
namespace {

constexpr std::string_view kRest = "...";

bool is_letter(char c) { return c >= 'A' && c <= 'Z'; }

/// "nc..." as "NC..."; throws UsageError.
std::string letters_of(const std::string& option, const std::string& list) {
  auto letters = upper_case(list);
  std::erase_if(letters, [](char c) { return c == ',' || c == ' '; });
  auto plain = letters;
  if (const auto rest = plain.find(kRest); rest != std::string::npos) plain.erase(rest, kRest.size());
  if (!std::all_of(plain.begin(), plain.end(), [](char c) { return is_letter(c) || c == '?'; }))
    throw UsageError(fmt::format("{}: wanted letters, ? and ..., such as NCHW or N...", option));
  for (const char c : plain)
    if (is_letter(c) && std::count(plain.begin(), plain.end(), c) > 1)
      throw UsageError(fmt::format("{}: {} is there twice", option, c));
  return letters;
}

/// With a letter for each dimension of the input; nothing when it has more or fewer.
std::optional<std::string> spread(std::string letters, const Port& port) {
  const auto rank = port.ranked ? port.shape.size() : letters.size();
  if (const auto rest = letters.find(kRest); rest != std::string::npos) {
    const auto others = letters.size() - kRest.size();
    letters.replace(rest, kRest.size(), rank > others ? rank - others : 0, '?');
  }
  return letters.size() == rank ? std::optional(letters) : std::nullopt;
}

}  // namespace

Layouts::Layouts(const std::vector<std::string>& texts, const std::vector<Port>& ports) {
  std::map<std::string, std::string> of_all;
  for (const auto& text : texts)
    for (const auto& [name, list] : named_lists("--layout", text)) {
      const auto option = "--layout " + text;
      const auto letters = letters_of(option, list);
      if (letters == "AUTO") continue;
      bool known = false, fits = false;
      for (const auto& p : ports) {
        if (!name.empty() && name != p.name) continue;
        known = true;
        const auto spelt = spread(letters, p);
        if (!spelt) continue;
        fits = true;
        if (!(name.empty() ? of_all : letters_).emplace(p.name, *spelt).second)
          throw UsageError(fmt::format("{}: two layouts for input \"{}\"", option, p.name));
      }
      if (known && fits) continue;
      std::vector<std::string> there;
      for (const auto& p : ports) there.push_back(fmt::format("\"{}\" ({})", p.name, to_string(p)));
      throw UsageError(fmt::format("{}: wanted {}; the inputs are {}", option,
                                   known ? "a letter per dimension" : "an input's name in front",
                                   fmt::join(there, ", ")));
    }
  letters_.merge(of_all);
}

std::string Layouts::of(const std::string& input) const {
  const auto it = letters_.find(input);
  return it == letters_.end() ? "" : it->second;
}

std::map<std::string, std::size_t> Layouts::batch_axes() const {
  std::map<std::string, std::size_t> out;
  bool any = false;
  for (const auto& [input, letters] : letters_) any |= (out[input] = letters.find('N')) != std::string::npos;
  if (!any) std::erase_if(out, [&](const auto& entry) { return letters_.at(entry.first).starts_with('?'); });
  return out;
}

}  // namespace lamina::tool
