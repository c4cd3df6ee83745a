#include "draw/totals.h"

#include <fmt/format.h>

#include <optional>

#include "base/error.h"
#include "graph/work.h"

namespace lamina {
namespace {

/// True if the multiply-adds of the operator are unknown when its shapes are.
bool multiplies(const Op& op) {
  const auto family = op.family();
  return family == OpFamily::convolution || family == OpFamily::matmul || family == OpFamily::recurrent;
}

/// Every constant of the graph counts, whether or not its file keeps equal ones once.
void add_constants(const Graph& g, Totals& t) {
  for (std::uint32_t v = 0; v < g.value_slots(); ++v)
    if (const auto* c = g.constant({v})) {
      t.parameters += c->size();
      t.parameter_bytes += c->bytes();
      t.parameter_types[std::string(name_of(c->element_type()))] += c->size();
    }
}

void add_graph(const Graph& g, Totals& t) {
  add_constants(g, t);
  for (const auto id : g.order()) {
    const auto& n = g.node(id);
    ++t.nodes;
    ++t.operators[n.op.name()];
    ++t.families[n.op.family()];
    const auto work = work_of(g, n);
    t.multiply_adds += work.multiply_adds;
    t.others += work.others;
    t.bytes += work.bytes;
    t.all_known &= work.known || !multiplies(n.op);
    for (const auto& body : n.bodies) {
      if (!n.op.has(Trait::epilogue)) {
        add_graph(body, t);
      } else {  // what it computes counts with its node
        add_constants(body, t);
        t.stages += body.node_count();
      }
    }
  }
}

/// The graph for a batch of 1; nothing if no batch is open, or if other sizes are open, too.
std::optional<Graph> of_one(const Graph& graph) {
  bool open = false;
  Graph out = graph;
  for (const auto v : out.inputs()) {
    auto type = out.type(v);
    if (!type.shape.ranked()) return std::nullopt;
    for (std::size_t i = 0; i < type.shape.rank(); ++i)
      if (!type.shape[i].known() && i > 0) return std::nullopt;
    if (type.shape.known()) continue;
    open = true;
    type.shape[0] = 1;
    out.set_type(v, type);
  }
  if (!open) return std::nullopt;
  try {
    out.infer_types();
  } catch (const Error&) {  // it must be more than one
    return std::nullopt;
  }
  return out;
}

}  // namespace

Totals graph_totals(const Graph& graph) {
  Totals t;
  add_graph(graph, t);
  if (t.all_known) return t;
  const auto single = of_one(graph);
  if (!single) return t;
  Totals known;
  add_graph(*single, known);
  if (!known.all_known) return t;
  known.of_one = true;
  return known;
}

std::string work_text(const Totals& t) {
  const auto number = fmt::format("{:.3g} ({:.3g} GFLOP)", t.multiply_adds, 1e-9 * t.flops());
  if (t.all_known) return number + (t.of_one ? " for a batch of 1" : "");
  if (t.multiply_adds == 0) return "unknown: --shape sets the sizes of inputs";
  return number + " or more: some sizes are unknown; --shape sets those of inputs";
}

}  // namespace lamina
