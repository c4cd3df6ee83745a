#include "tool/totals.h"

#include <fmt/format.h>

#include "graph/work.h"

namespace lamina::tool {
namespace {

/// Its multiply-adds are unknown when its shapes are.
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

}  // namespace

Totals graph_totals(const Graph& graph) {
  Totals t;
  add_graph(graph, t);
  return t;
}

std::string work_text(const Totals& t) {
  return fmt::format("{}{:.3g} ({:.3g} GFLOP)",
                     t.all_known ? "" : "at least (unknown shapes; --shape makes them known) ",
                     t.multiply_adds, 1e-9 * t.flops());
}

}  // namespace lamina::tool
