#include "tool/extension_list.h"

#include <nlohmann/json.hpp>

namespace lamina::tool {
namespace {

using nlohmann::json;

std::string string_at(const json& j, const char* key) { return j.at(key).get<std::string>(); }

std::string joined(const json& list, const char* with) {
  return fmt::format("{}", fmt::join(list.get<std::vector<std::string>>(), with));
}

std::string ports_text(const json& all) {
  std::string out;
  for (const auto& p : all) {
    out += (out.empty() ? "" : ", ") + string_at(p, "name") + ": " + joined(p.at("types"), "|");
    if (p.at("constant")) out += " constant";
    if (p.at("optional")) out += " (optional)";
    if (p.at("variadic")) out += " ...";
  }
  return out.empty() ? "none" : out;
}

void say_operation(const Common& c, const json& op) {
  const auto doc = string_at(op, "doc");
  c.say("  {}:{}  since {}{}{}", string_at(op, "domain"), string_at(op, "type"), op.at("since").dump(),
        doc.empty() ? "" : "  ", doc);
  c.say("    inputs      {}", ports_text(op.at("inputs")));
  c.say("    outputs     {}", ports_text(op.at("outputs")));
  for (const auto& a : op.at("attributes")) {
    const auto about = string_at(a, "doc");
    c.say("    attribute   {}: {}, {}{}{}", string_at(a, "name"), string_at(a, "kind"),
          a.at("required") ? "required" : "default " + string_at(a, "default"), about.empty() ? "" : "; ",
          about);
  }
  for (const auto& k : op.at("configurations"))
    c.say("    kernel      {}: {} -> {}{}", string_at(k, "name"), string_at(k, "inputs"),
          string_at(k, "outputs"), k.at("in_place") == 0 ? "" : ", in place");
  for (const auto& text : op.at("samples")) c.say("    sample      {}", text.get<std::string>());
  if (!op.at("abilities").empty()) c.say("    besides     {}", joined(op.at("abilities"), ", "));
}

void say_extension(const Common& c, const json& e) {
  const auto version = string_at(e, "version"), licence = string_at(e, "licence");
  c.say("{}: {}{}{}", string_at(e, "path"), string_at(e, "name"), version.empty() ? "" : " " + version,
        licence.empty() ? "" : ", licence: " + licence);
  if (!e.at("needs").empty()) c.say("  needs       {}", joined(e.at("needs"), ", "));
  for (const auto& text : e.at("ignored")) c.say("  ignored     {}", text.get<std::string>());
  for (const auto& op : e.at("operations")) say_operation(c, op);
  for (const auto& rule : e.at("rules")) {
    c.say("  rule {}  {}", string_at(rule, "name"), string_at(rule, "doc"));
    c.say("    {}  ->  {}", string_at(rule, "pattern"), string_at(rule, "replacement"));
  }
}

}  // namespace

void say_extensions(const Common& c, const json& extensions) {
  for (const auto& e : extensions) say_extension(c, e);
}

}  // namespace lamina::tool
