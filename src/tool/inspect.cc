/// lamina inspect: what is in a model, without reading its weights.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "api/inside.h"
#include "base/error.h"
#include "graph/work.h"
#include "ops/control.h"
#include "tool/session.h"
#include "tool/verb_list.h"

namespace lamina::tool {
namespace {

struct Totals {
  std::map<std::string, std::size_t> operators;
  std::map<std::string, std::uint64_t> parameter_types;
  std::uint64_t parameters = 0, parameter_bytes = 0;
  double multiply_adds = 0;
  bool all_known = true;
};

/// Its multiply-adds are unknown when its shapes are.
bool multiplies(const Op& op) {
  const auto family = op.family();
  return family == OpFamily::convolution || family == OpFamily::matmul || family == OpFamily::recurrent;
}

/// Every constant of the graph counts, whether or not its file keeps equal ones once.
void add_graph(const Graph& g, Totals& t) {
  for (std::uint32_t v = 0; v < g.value_slots(); ++v)
    if (const auto* c = g.constant({v})) {
      t.parameters += c->size();
      t.parameter_bytes += c->bytes();
      t.parameter_types[std::string(name_of(c->element_type()))] += c->size();
    }
  for (const auto id : g.order()) {
    const auto& n = g.node(id);
    ++t.operators[n.op.name()];
    const auto work = work_of(g, n);
    t.multiply_adds += work.multiply_adds;
    t.all_known &= work.known || !multiplies(n.op);
    for (const auto& body : n.bodies) add_graph(body, t);
  }
}

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

/// With the dimensions that --shape makes known.
struct Ports {
  std::vector<Port> inputs, outputs;
  explicit Ports(const Model& model) : inputs(model.inputs()), outputs(model.outputs()) {}
  explicit Ports(const Graph& g) {
    for (const auto v : g.inputs()) inputs.push_back(port_of(g.value(v).name, g.type(v)));
    for (const auto& r : g.results()) outputs.push_back(port_of(r.name, g.type(r.value)));
  }
};

int run(const Common& c) {
  const Model model = read_model(c);
  const auto& loaded = Inside::of(model).described();
  const Graph graph = with_shapes(loaded.graph, c);
  const auto ports = c.shape.empty() ? Ports(model) : Ports(graph);
  Totals t;
  add_graph(graph, t);
  c.say("{}: {} {}{}", c.model, loaded.format, loaded.version,
        loaded.producer.empty() ? "" : ", made by " + loaded.producer);
  for (const auto& p : ports.inputs)
    c.say("input   {}  {}{}", p.name, to_string(p), p.value.valid() ? "  (has a value until it is set)" : "");
  for (const auto& p : ports.outputs) c.say("output  {}  {}", p.name, to_string(p));
  for (const auto& p : model.variables()) c.say("variable  {}  {}", p.name, to_string(p));
  std::vector<std::pair<std::string, std::size_t>> sorted(t.operators.begin(), t.operators.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::size_t nodes = 0;
  std::string line;
  for (const auto& [name, count] : sorted) {
    nodes += count;
    line += fmt::format("{}{} {}", line.empty() ? "" : ", ", name, count);
  }
  c.say("{} operators: {}", nodes, line);
  c.say("parameters {} ({})", t.parameters, human_bytes(static_cast<double>(t.parameter_bytes)));
  c.say("multiply-adds {}{:.3g} ({:.3g} GFLOP)",
        t.all_known ? "" : "at least (unknown shapes; --shape makes them known) ", t.multiply_adds,
        2e-9 * t.multiply_adds);
  for (const auto& w : model.warnings()) c.say("warning: {}", w);
  for (const auto& u : model.unsupported()) c.say("unsupported: {}", u);
  nlohmann::json j{{"model", c.model},
                   {"format", loaded.format},
                   {"version", loaded.version},
                   {"producer", loaded.producer},
                   {"inputs", ports_json(ports.inputs)},
                   {"outputs", ports_json(ports.outputs)},
                   {"variables", ports_json(model.variables())},
                   {"operators", t.operators},
                   {"parameters", t.parameters},
                   {"parameter_bytes", t.parameter_bytes},
                   {"parameter_types", t.parameter_types},
                   {"flops", 2 * t.multiply_adds},
                   {"flops_complete", t.all_known},
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
  options.flag("--quiet", c->quiet, "Nothing but the JSON");
  add_json(options, *c);
  return [c] { return run(*c); };
}

}  // namespace lamina::tool
