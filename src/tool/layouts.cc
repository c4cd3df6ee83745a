#include "tool/layouts.h"

#include "base/option_words.h"
#include "tool/common.h"
#include "tool/named_lists.h"

namespace lamina::tool {
Layouts::Layouts(const std::vector<std::string>& texts, const std::vector<Port>& ports) {
  std::map<std::string, std::string> of_all;
  for (const auto& text : texts)
    for (const auto& [name, list] : named_lists("--layout", text)) {
      const auto option = "--layout " + text;
      const auto letters = layout_letters(option, list);
      if (letters == "AUTO") continue;
      bool known = false, fits = false;
      for (const auto& p : ports) {
        if (!name.empty() && name != p.name) continue;
        known = true;
        const auto spelt = spread_layout(letters, p.ranked ? p.shape.size() : letters.size());
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
