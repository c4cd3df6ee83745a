#include "draw/report_list.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/table_text.h"
#include "draw/text.h"

namespace lamina {
namespace {

constexpr std::string_view kListEllipsis = "\xE2\x80\xA6";

/// The text without what is in quotes or brackets, which differs from node to node.
std::string without_names(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    const bool opens = c == '\'' || c == '"' || c == '[';
    const auto close = opens ? text.find(c == '[' ? ']' : c, i + 1) : std::string::npos;
    if (close == std::string::npos) {
      out += text[i++];
      continue;
    }
    out += c;
    out += kListEllipsis;
    out += text[close];
    i = close + 1;
  }
  return out;
}

}  // namespace

std::string names_html(const std::vector<std::string>& names, std::size_t most) {
  std::string out;
  const auto shown = std::min(names.size(), most);
  for (std::size_t i = 0; i < shown; ++i)
    out += (i ? ", " : "") + escape_xml(shortened(printable(names[i]), 100));
  if (shown < names.size()) out += fmt::format(" and {} more", names.size() - shown);
  return out;
}

std::vector<RefusalGroup> grouped(const std::vector<const LedgerEntry*>& refusals) {
  std::map<std::string, RefusalGroup> by_reason;
  for (const auto* e : refusals) {
    auto pattern = without_names(e->text);
    auto& group = by_reason[pattern];
    if (group.entries.empty())
      group.reason = e->text;
    else if (group.reason != e->text)
      group.reason = std::move(pattern);
    group.entries.push_back(e);
  }
  std::vector<RefusalGroup> out;
  for (auto& [pattern, group] : by_reason) out.push_back(std::move(group));
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.entries.size() > b.entries.size(); });
  return out;
}

}  // namespace lamina
