/// lamina inspect: what is in a model, without reading its weights.
#include <algorithm>
#include <map>
#include <set>

#include "api/loaded_model.h"
#include "base/error.h"
#include "ops/control.h"
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

/// Multiply-adds of the operators that matter: convolutions and matrix products.
void add_work(const Graph& g, const Node& n, Totals& t) {
  const auto name = n.op.name();
  const bool convolution =
      name == "Convolution" || name == "BinaryConvolution" || name == "ConvolutionBackpropData";
  if (!convolution && name != "MatMul") return;
  const auto& out = g.type(n.outputs[0]).shape;
  const auto& a = g.type(n.inputs[0]).shape;
  const auto& b = g.type(n.inputs[1]).shape;
  if (!out.known() || !a.known() || !b.known()) {
    t.all_known = false;
    return;
  }
  const auto count = [](const Shape& s) { return static_cast<double>(element_count(s.sizes())); };
  if (name == "ConvolutionBackpropData")
    t.multiply_adds += count(a) * count(b) / static_cast<double>(std::max<std::int64_t>(1, b[0].size()));
  else if (convolution)
    t.multiply_adds += count(out) * count(b) / static_cast<double>(std::max<std::int64_t>(1, b[0].size()));
  else
    t.multiply_adds += count(out) * static_cast<double>(a.rank() ? a[a.rank() - 1].size() : 1);
}

void add_graph(const Graph& g, Totals& t, std::set<const void*>& seen) {
  for (std::uint32_t v = 0; v < g.value_slots(); ++v)
    if (const auto* c = g.constant({v}); c && seen.insert(c->raw()).second) {
      t.parameters += c->size();
      t.parameter_bytes += c->bytes();
      t.parameter_types[std::string(name_of(c->element_type()))] += c->size();
    }
  for (const auto id : g.order()) {
    const auto& n = g.node(id);
    ++t.operators[n.op.name()];
    add_work(g, n, t);
    for (const auto& body : n.bodies) add_graph(body, t, seen);
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

/// With the shapes of --shape where given.
Graph with_shapes(const Graph& graph, const Common& c) {
  const auto shapes = c.shapes();
  if (shapes.empty()) return graph;
  Graph g = graph;
  for (const auto& [name, dims] : shapes) {
    const auto& inputs = g.inputs();
    const auto it =
        std::find_if(inputs.begin(), inputs.end(), [&, n = name](ValueId v) { return g.value(v).name == n; });
    if (it == inputs.end()) fail(ErrorCode::bad_input, "--shape: there is no input \"{}\"", name);
    const auto type = g.type(*it);
    if (!type.shape.fits(Shape::of(dims)))
      fail(ErrorCode::bad_input, "--shape: input \"{}\" is {}", name, to_string(type));
    g.set_type(*it, {type.element, Shape::of(dims)});
  }
  g.infer_types();
  return g;
}

int run(const Common& c) {
  const Model model(c.model);
  const auto& loaded = model.share()->loaded();
  const Graph graph = with_shapes(loaded.graph, c);
  Totals t;
  std::set<const void*> seen;
  add_graph(graph, t, seen);
  c.say("{}: {} {}{}", c.model, loaded.format, loaded.version,
        loaded.producer.empty() ? "" : ", made by " + loaded.producer);
  for (const auto& p : model.inputs()) c.say("input   {}  {}", p.name, to_string(p));
  for (const auto& p : model.outputs()) c.say("output  {}  {}", p.name, to_string(p));
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
  for (const auto& w : loaded.warnings) c.say("warning: {}", w);
  for (const auto& u : model.unsupported()) c.say("unsupported: {}", u);
  nlohmann::json j{{"model", c.model},
                   {"format", loaded.format},
                   {"version", loaded.version},
                   {"producer", loaded.producer},
                   {"inputs", ports_json(model.inputs())},
                   {"outputs", ports_json(model.outputs())},
                   {"operators", t.operators},
                   {"parameters", t.parameters},
                   {"parameter_bytes", t.parameter_bytes},
                   {"parameter_types", t.parameter_types},
                   {"flops", 2 * t.multiply_adds},
                   {"flops_complete", t.all_known},
                   {"unsupported", model.unsupported()},
                   {"warnings", loaded.warnings}};
  write_json(c, j);
  return 0;
}

}  // namespace

Verb setup_inspect(CLI::App& app) {
  auto c = std::make_shared<Common>();
  add_model(app, *c);
  app.add_option("--shape", c->shape, "Shape of an input")
      ->type_name("NAME=1,3,224,224")
      ->allow_extra_args(false);
  app.add_flag("--quiet", c->quiet, "Nothing but the JSON");
  add_json(app, *c);
  return [c] { return run(*c); };
}

}  // namespace lamina::tool
