/// lamina inspect: what is in a model, without reading its weights.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "lamina/listings.h"
#include "tool/inputs.h"
#include "tool/session.h"
#include "tool/verb_list.h"

namespace lamina::tool {
namespace {

using nlohmann::json;

/// "258 operators: Convolution 53, Add 44, ...", the most frequent first.
std::string operators_text(const json& counts) {
  std::vector<std::pair<std::string, std::size_t>> sorted;
  for (const auto& [name, count] : counts.items()) sorted.emplace_back(name, count);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::size_t nodes = 0;
  std::string line;
  for (const auto& [name, count] : sorted) {
    nodes += count;
    line += fmt::format("{}{} {}", line.empty() ? "" : ", ", name, count);
  }
  return fmt::format("{} operators: {}", nodes, line);
}

void say_list(const Common& c, const char* what, const json& texts) {
  for (const auto& text : texts) c.say("{}: {}", what, text.get<std::string>());
}

int inspect_model(const Common& c) {
  const Model model = with_shapes(read_model(c), c);
  const auto listing = json::parse(describe_model(model));
  const std::string producer = listing.at("producer");
  c.say("{}: {} {}{}", c.model, listing.at("format").get<std::string>(),
        listing.at("version").get<std::string>(), producer.empty() ? "" : ", made by " + producer);
  for (const auto& p : model.inputs())
    c.say("input   {}  {}{}", p.name, to_string(p), p.value.valid() ? "  (has a value until it is set)" : "");
  for (const auto& p : model.outputs()) c.say("output  {}  {}", p.name, to_string(p));
  for (const auto& shapes : listing.at("compiled_for"))
    c.say("compiled for  {}", inputs_text(model.inputs(), shapes.get<std::vector<Dims>>()));
  for (const auto& p : model.variables()) c.say("variable  {}  {}", p.name, to_string(p));
  c.say("{}", operators_text(listing.at("operators")));
  c.say("parameters {} ({})", listing.at("parameters").get<std::uint64_t>(),
        human_bytes(listing.at("parameter_bytes").get<double>()));
  c.say("multiply-adds {}", listing.at("multiply_adds").get<std::string>());
  say_list(c, "unused", listing.at("unused"));
  say_list(c, "warning", listing.at("warnings"));
  say_list(c, "unsupported", listing.at("unsupported"));
  write_json(c, listing);
  return 0;
}

}  // namespace

Verb setup_inspect(OptionSet& options) {
  auto c = std::make_shared<Common>();
  add_model(options, *c);
  add_shape(options, *c);
  options.flag("--quiet", c->quiet, "Print nothing but the JSON");
  add_json(options, *c);
  return [c] { return inspect_model(*c); };
}

}  // namespace lamina::tool
