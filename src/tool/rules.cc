/// lamina rules: the optimisations, as --disable and explain --why name them.
#include "rules/rules.h"

#include <nlohmann/json.hpp>

#include "rules/extension_rules.h"
#include "tool/verb_list.h"

namespace lamina::tool {
namespace {

int list_rules(const Common& c) {
  auto list = nlohmann::json::array();
  const auto more = extension_rules(std::make_shared<const ExtensionSet>(c.extensions));
  for (const auto* rules : {&all_rules(), more.get()}) {
    if (!rules) continue;
    for (const auto& rule : *rules) {
      c.say("{:<32} {:<10} {}", rule.name, name_of(rule.set), rule.doc);
      list.push_back({{"name", rule.name}, {"set", name_of(rule.set)}, {"doc", rule.doc}});
    }
  }
  write_json(c, {{"rules", list}});
  return 0;
}

}  // namespace

Verb setup_rules(OptionSet& options) {
  auto c = std::make_shared<Common>();
  add_extensions(options, *c);
  add_json(options, *c);
  return [c] { return list_rules(*c); };
}

}  // namespace lamina::tool
