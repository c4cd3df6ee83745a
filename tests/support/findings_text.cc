#include "tests/support/findings_text.h"

#include <fmt/format.h>

namespace lamina::testing {

std::string text_of(const checking::Findings& found) {
  std::string text;
  for (const auto& v : found.values)
    if (!v.ok())
      text += fmt::format("\n  value {} made by {}: {}", v.name, v.made_by,
                          v.problem.empty() ? checking::to_string(v.difference) : v.problem);
  for (const auto& l : found.layers)
    if (!l.ok())
      text +=
          fmt::format("\n  step {} ({}, {}): {}", l.name, l.op, l.kernel, checking::to_string(l.difference));
  for (const auto& o : found.outputs)
    if (!o.ok())
      text += fmt::format("\n  output {} against the {}: {}", o.name, o.against,
                          checking::to_string(o.difference));
  return text;
}

}  // namespace lamina::testing
