#include "tool/named_lists.h"

#include <fmt/format.h>

#include "tool/common.h"

namespace lamina::tool {

std::vector<std::pair<std::string, std::string>> named_lists(const std::string& option,
                                                             const std::string& text) {
  if (!text.ends_with(']')) {
    const auto equals = text.rfind('=');
    if (equals == std::string::npos) return {{"", text}};
    return {{text.substr(0, equals), text.substr(equals + 1)}};
  }
  std::vector<std::pair<std::string, std::string>> out;
  for (std::size_t at = 0; at < text.size();) {
    const auto open = text.find('[', at), close = text.find(']', at);
    if (open == std::string::npos || close < open)
      throw UsageError(fmt::format("{} {}: wanted NAME[...],NAME[...]", option, text));
    auto name = text.substr(at, open - at);
    if (name.ends_with('=')) name.pop_back();
    out.emplace_back(name, text.substr(open + 1, close - open - 1));
    at = close + 1;
    if (at == text.size()) break;
    if (text[at] != ',')
      throw UsageError(fmt::format("{} {}: wanted a comma after each ], one list per input", option, text));
    ++at;
  }
  return out;
}

}  // namespace lamina::tool
