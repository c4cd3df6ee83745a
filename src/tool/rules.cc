/// lamina rules: the optimisations, as --disable and explain --why name them.
#include <nlohmann/json.hpp>

#include "lamina/listings.h"
#include "tool/verb_list.h"

namespace lamina::tool {
namespace {

int say_rules(const Common& c) {
  const auto listing = nlohmann::json::parse(list_rules(c.extensions));
  for (const auto& rule : listing.at("rules"))
    c.say("{:<32} {:<10} {}", rule.at("name").get<std::string>(), rule.at("set").get<std::string>(),
          rule.at("doc").get<std::string>());
  write_json(c, listing);
  return 0;
}

}  // namespace

Verb setup_rules(OptionSet& options) {
  auto c = std::make_shared<Common>();
  add_extensions(options, *c);
  add_json(options, *c);
  return [c] { return say_rules(*c); };
}

}  // namespace lamina::tool
