#include "listings/extension_list.h"

#include <nlohmann/json.hpp>

#include "extension/attribute_text.h"
#include "extension/extensions.h"
#include "rewrite/rule.h"
#include "rules/extension_rules.h"

namespace lamina {
namespace {

nlohmann::json declared_ports(const std::vector<DeclaredPort>& all) {
  auto list = nlohmann::json::array();
  for (const auto& p : all) {
    auto types = nlohmann::json::array();
    for (const auto t : p.types) types.push_back(name_of(t));
    list.push_back({{"name", p.name},
                    {"types", types},
                    {"optional", p.optional},
                    {"variadic", p.variadic},
                    {"constant", p.constant}});
  }
  return list;
}

std::string layouts_text(const std::vector<std::int32_t>& layouts) {
  std::string out;
  for (const auto l : layouts) out += (out.empty() ? "" : ",") + layout_text(l);
  return out.empty() ? "-" : out;
}

/// What else the operation can do.
std::vector<std::string> abilities(const DeclaredOperation& op) {
  std::vector<std::string> out;
  if (op.calls.elementwise) out.emplace_back("element-wise");
  if (op.calls.reference) out.emplace_back("reference");
  if (op.calls.infer) out.emplace_back("own inference");
  if (op.calls.prepare) out.emplace_back("prepared constants");
  if (op.calls.load) out.emplace_back("state that is kept");
  if (op.calls.scratch_bytes) out.emplace_back("scratch memory");
  if (op.has(LAMINA_TAKES_STAGES)) out.emplace_back("takes stages");
  if (op.has(LAMINA_SHAPE_AFTER_RUN)) out.emplace_back("shape after the run");
  if (op.has(LAMINA_IMPURE)) out.emplace_back("impure");
  if (op.has(LAMINA_ALLOWS_BF16)) out.emplace_back("allows bf16");
  if (op.has(LAMINA_ALLOWS_INT8)) out.emplace_back("allows int8");
  if (op.accumulates != ElementType::undefined)
    out.push_back(fmt::format("accumulates in {}", name_of(op.accumulates)));
  return out;
}

nlohmann::json operation_json(const DeclaredOperation& op) {
  nlohmann::json j{{"domain", op.domain},
                   {"type", op.type},
                   {"since", op.since},
                   {"doc", op.doc},
                   {"inputs", declared_ports(op.in)},
                   {"outputs", declared_ports(op.out)}};
  j["attributes"] = nlohmann::json::array();
  for (const auto& a : op.attributes) {
    const auto value = a.value ? to_string(*a.value) : std::string();
    j["attributes"].push_back({{"name", a.name},
                               {"kind", name_of_kind(a.kind)},
                               {"doc", a.doc},
                               {"required", !a.value},
                               {"default", a.value ? nlohmann::json(value) : nlohmann::json()}});
  }
  j["configurations"] = nlohmann::json::array();
  for (const auto& k : op.configurations) {
    j["configurations"].push_back({{"name", k.name},
                                   {"inputs", layouts_text(k.in_layouts)},
                                   {"outputs", layouts_text(k.out_layouts)},
                                   {"in_place", k.in_place.size()}});
  }
  j["samples"] = op.samples;
  j["abilities"] = abilities(op);
  return j;
}

}  // namespace

nlohmann::json extensions_json(const std::vector<std::string>& paths) {
  auto list = nlohmann::json::array();
  if (paths.empty()) return list;
  const auto set = std::make_shared<const ExtensionSet>(paths);
  const auto rules = extension_rules(set);  // their texts are checked
  for (const auto& e : set->all()) {
    const auto& about = e->about;
    nlohmann::json j{{"path", e->origin.path},
                     {"name", about.name},
                     {"version", about.version},
                     {"licence", about.licence},
                     {"needs", about.needs},
                     {"never_unload", about.never_unload},
                     {"operations", nlohmann::json::array()},
                     {"rules", nlohmann::json::array()},
                     {"ignored", e->ignored}};
    for (const auto& op : e->operations) j["operations"].push_back(operation_json(*op));
    for (const auto& rule : e->rules) {
      j["rules"].push_back({{"name", rule->name},
                            {"doc", rule->doc},
                            {"pattern", rule->pattern},
                            {"replacement", rule->replacement}});
    }
    list.push_back(std::move(j));
  }
  return list;
}

}  // namespace lamina
