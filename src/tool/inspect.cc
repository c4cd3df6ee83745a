/// lamina inspect: what is in a model, without reading its weights.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "api/inside.h"
#include "base/error.h"
#include "draw/totals.h"
#include "ops/unused_inputs.h"
#include "tool/inputs.h"
#include "tool/session.h"
#include "tool/verb_list.h"

namespace lamina::tool {
namespace {

nlohmann::json ports_json(const std::vector<Port>& ports) {
  auto out = nlohmann::json::array();
  for (const auto& p : ports)
    out.push_back({{"name", p.name},
                   {"type", name_of(p.type)},
                   {"shape", p.shape},
                   {"dimensions", p.dimension_names},
                   {"text", to_string(p)}});
  return out;
}

/// The model's ports, with the dimensions that --shape makes known.
struct Ports {
  std::vector<Port> inputs, outputs;
  explicit Ports(const Model& model) : inputs(model.inputs()), outputs(model.outputs()) {}
  explicit Ports(const Graph& g) {
    for (const auto v : g.inputs()) inputs.push_back(port_of(g.value(v).name, g.type(v)));
    for (const auto& r : g.results()) outputs.push_back(port_of(r.name, g.type(r.value)));
  }
};

/// "258 operators: Convolution 53, Add 44, ...", the most frequent first.
std::string operators_text(const Totals& t) {
  std::vector<std::pair<std::string, std::size_t>> sorted(t.operators.begin(), t.operators.end());
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

int inspect_model(const Common& c) {
  const Model model = read_model(c);
  const auto& loaded = Inside::of(model).described();
  const Graph graph = with_shapes(loaded.graph, c);
  const auto ports = c.shape.empty() ? Ports(model) : Ports(graph);
  const auto t = graph_totals(graph);
  c.say("{}: {} {}{}", c.model, name_of(loaded.format), loaded.version,
        loaded.producer.empty() ? "" : ", made by " + loaded.producer);
  for (const auto& p : ports.inputs)
    c.say("input   {}  {}{}", p.name, to_string(p), p.value.valid() ? "  (has a value until it is set)" : "");
  for (const auto& p : ports.outputs) c.say("output  {}  {}", p.name, to_string(p));
  for (const auto& shapes : Inside::of(model).compiled_for())
    c.say("compiled for  {}", inputs_text(model.inputs(), shapes));
  for (const auto& p : model.variables()) c.say("variable  {}  {}", p.name, to_string(p));
  c.say("{}", operators_text(t));
  c.say("parameters {} ({})", t.parameters, human_bytes(static_cast<double>(t.parameter_bytes)));
  c.say("multiply-adds {}", work_text(t));
  std::vector<std::string> unused;
  for (const auto& input : unused_inputs(graph)) unused.push_back(to_string(input));
  for (const auto& text : unused) c.say("unused: {}", text);
  for (const auto& w : model.warnings()) c.say("warning: {}", w);
  for (const auto& u : model.unsupported()) c.say("unsupported: {}", u);
  nlohmann::json j{{"model", c.model},
                   {"format", name_of(loaded.format)},
                   {"version", loaded.version},
                   {"producer", loaded.producer},
                   {"inputs", ports_json(ports.inputs)},
                   {"outputs", ports_json(ports.outputs)},
                   {"variables", ports_json(model.variables())},
                   {"compiled_for", Inside::of(model).compiled_for()},
                   {"operators", t.operators},
                   {"parameters", t.parameters},
                   {"parameter_bytes", t.parameter_bytes},
                   {"parameter_types", t.parameter_types},
                   {"flops", t.flops()},
                   {"flops_complete", t.all_known},
                   {"flops_of_one", t.of_one},
                   {"unused", unused},
                   {"unsupported", model.unsupported()},
                   {"warnings", model.warnings()}};
  write_json(c, j);
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
