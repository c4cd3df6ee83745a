#pragma once
/// Patterns and replacements of libraries' rules as text; what they look like says lamina/extension.h.
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/op.h"

namespace lamina {

/// NAME = OPERATOR(ARGUMENTS) ATTRIBUTE=VALUE...
struct RuleStatement {
  struct Argument {
    enum class Kind { name, constant, number, absent };
    Kind kind = Kind::name;
    std::string name;
    double number = 0;
  };
  std::string name, op;
  std::vector<Argument> arguments;
  std::vector<std::pair<std::string, std::string>> attributes;
};

/// Throws Error(bad_file) that says where the text is wrong.
std::vector<RuleStatement> parse_rule_text(std::string_view text);

}  // namespace lamina
