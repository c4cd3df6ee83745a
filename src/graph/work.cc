#include "graph/work.h"

#include <algorithm>

namespace lamina {

double WorkContext::count(ValueId v) const {
  const auto& shape = graph_.type(v).shape;
  return shape.known() ? static_cast<double>(element_count(shape.sizes())) : 0;
}

double WorkContext::in(std::size_t i) const {
  return i < node_.inputs.size() && node_.inputs[i].valid() ? count(node_.inputs[i]) : 0;
}

double WorkContext::axis(std::size_t input, int axis) const {
  const auto dims = graph_.type(node_.inputs[input]).shape.sizes();
  const auto at = axis < 0 ? axis + static_cast<int>(dims.size()) : axis;
  return at < 0 || at >= static_cast<int>(dims.size())
             ? 1
             : static_cast<double>(std::max<std::int64_t>(1, dims[static_cast<std::size_t>(at)]));
}

bool WorkContext::known() const {
  const auto fits = [&](ValueId v) { return !v.valid() || graph_.type(v).shape.known(); };
  return std::all_of(node_.inputs.begin(), node_.inputs.end(), fits) &&
         std::all_of(node_.outputs.begin(), node_.outputs.end(), fits);
}

double WorkContext::bytes(ValueId v) const {
  return v.valid() ? count(v) * bits_of(graph_.type(v).element) / 8 : 0;
}

double product_of(const Ints& values) {
  double product = 1;
  for (const auto v : values) product *= static_cast<double>(v);
  return product;
}

NodeWork usual_work(const WorkContext& c) {
  return {.others = c.node().op.has(Trait::elementwise) ? c.out() : 0};
}

NodeWork work_of(const Graph& graph, const Node& n) {
  const WorkContext c(graph, n);
  NodeWork work;
  if (n.outputs.empty()) return {.known = c.known()};
  if (c.known()) work = n.op->work(c);
  work.known = c.known();
  double out = 0;
  for (const auto v : n.outputs) out += c.bytes(v);
  work.bytes = out;
  for (std::size_t i = 0; !n.op.has(Trait::keeps_values) && i < n.inputs.size(); ++i) {
    const auto read = c.bytes(n.inputs[i]);
    work.bytes += i == 0 && n.op.has(Trait::reads_part) ? std::min(out, read) : read;
  }
  const Graph* stages = work.known ? epilogue(n) : nullptr;
  if (stages) work.others += c.out() * static_cast<double>(stages->node_count());
  return work;
}

}  // namespace lamina
