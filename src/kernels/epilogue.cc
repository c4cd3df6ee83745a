#include "kernels/epilogue.h"

#include <algorithm>

#include "kernels/cost.h"
#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/quantization.h"

namespace lamina {

std::size_t epilogue_size(const Node& node) {
  const Graph* body = epilogue(node);
  return body ? body->node_count() : 0;
}

namespace {

/// Which extra input of the compute node a parameter of the body is.
std::optional<std::size_t> extra_of(const Node& node, const Graph& body, ValueId v) {
  for (std::size_t p = 1; p < body.inputs().size(); ++p)
    if (body.inputs()[p] == v) return base_inputs(node) + p - 1;
  return std::nullopt;
}

/// The stage that continues from `running`, or nothing when the body is no chain there.
std::optional<Stage> stage_after(const Node& node, const Graph& body, ValueId running) {
  if (body.readers(running) != 1 || body.is_result(running)) return std::nullopt;
  const auto use = body.value(running).uses[0];
  Stage stage;
  stage.node = &body.node(use.node);
  stage.running = use.input;
  if (stage.node->outputs.size() != 1) return std::nullopt;
  std::size_t others = 0;
  for (std::size_t i = 0; i < stage.node->inputs.size(); ++i) {
    const auto v = stage.node->inputs[i];
    if (i == stage.running || !v.valid()) continue;
    if (const auto* constant = body.constant(v)) {
      if (others == 0) stage.constant = constant;  // further constants are read from the node itself
    } else if (const auto extra = extra_of(node, body, v); extra && others == 0) {
      stage.extra = extra;
    } else {
      return std::nullopt;
    }
    if (others++ == 0) stage.operand_dims = body.type(v).shape.known() ? body.type(v).shape.sizes() : Dims{};
  }
  return stage;
}

/// An epilogue that does nothing, for what `body` gets.
Graph no_stages(const Graph& body) {
  Graph out;
  const auto x = body.inputs()[0];
  out.add_result(body.results()[0].name, out.add_input(body.value(x).name, body.type(x)));
  return out;
}

}  // namespace

std::optional<std::vector<Stage>> chain_of(const Node& node) {
  std::vector<Stage> stages;
  const Graph* body = epilogue(node);
  if (!body) return stages;
  ValueId running = body->inputs()[0];
  while (!(body->is_result(running) && body->value(running).uses.empty())) {
    auto stage = stage_after(node, *body, running);
    if (!stage) return std::nullopt;
    running = stage->node->outputs[0];
    stages.push_back(*stage);
  }
  return stages;
}

namespace {

/// True when, after the first `kept` nodes of `order`, only one value made by them (or the base result) is
/// still read.
ValueId single_crossing(const Graph& body, const std::vector<NodeId>& order, std::size_t kept) {
  std::vector<bool> made(body.value_slots(), false);
  made[body.inputs()[0].index] = true;
  for (std::size_t i = 0; i < kept; ++i) made[body.node(order[i]).outputs[0].index] = true;
  ValueId crossing;
  std::size_t count = 0;
  const auto cross = [&](ValueId v) {
    if (v.valid() && made[v.index] && v != crossing) crossing = v, ++count;
  };
  for (std::size_t i = kept; i < order.size(); ++i)
    for (auto v : body.node(order[i]).inputs) cross(v);
  for (const auto& r : body.results()) cross(r.value);
  return count == 1 ? crossing : ValueId{};
}

/// The last operators of a body as nodes of the graph that `old` was in; `made`: values of the body that
/// there are.
ValueId add_one_by_one(Graph& graph, const Graph& body, const std::vector<NodeId>& order, const Node& old,
                       std::vector<ValueId>& made) {
  for (const auto id : order) {
    const Node& n = body.node(id);
    std::vector<ValueId> in;
    for (auto v : n.inputs) {
      if (v.valid() && !made[v.index].valid())
        made[v.index] = graph.add_constant(*body.constant(v), body.value(v).name);
      in.push_back(v.valid() ? made[v.index] : ValueId{});
    }
    const auto copy = graph.add_node(n.op, in, n.name);
    graph.set_sources(copy, n.sources.empty() ? old.sources : n.sources);
    made[n.outputs[0].index] = graph.node(copy).outputs[0];
  }
  return made[body.results()[0].value.index];
}

/// The same as one node: one pass over memory.
ValueId add_together(Graph& graph, const Graph& body, const std::vector<NodeId>& order, const Node& old,
                     const std::vector<ValueId>& made, ValueId crossing) {
  Graph rest;
  std::vector<ValueId> map(body.value_slots()), inputs;
  const auto read = [&](ValueId v) {
    if (!v.valid() || map[v.index].valid()) return;
    const auto& name = body.value(v).name;
    if (const auto* constant = body.constant(v)) {
      map[v.index] = rest.add_constant(*constant, name);
    } else {
      map[v.index] = rest.add_input(name, body.type(v));
      inputs.push_back(made[v.index]);
    }
  };
  read(crossing);
  std::vector<SourceId> sources;
  for (const auto id : order) {
    const Node& n = body.node(id);
    std::vector<ValueId> in;
    for (auto v : n.inputs) {
      read(v);
      in.push_back(v.valid() ? map[v.index] : ValueId{});
    }
    const auto copy = rest.add_node(n.op, in, n.name);
    rest.set_sources(copy, n.sources);
    sources.insert(sources.end(), n.sources.begin(), n.sources.end());
    map[n.outputs[0].index] = rest.node(copy).outputs[0];
  }
  rest.add_result("y", map[body.results()[0].value.index]);
  std::sort(sources.begin(), sources.end());
  sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
  std::vector<Graph> bodies;
  bodies.push_back(std::move(rest));
  const auto id = graph.add_node(Elementwise{}, inputs, body.node(order.back()).name, -1, std::move(bodies));
  graph.set_sources(id, sources.empty() ? old.sources : sources);
  return graph.node(id).outputs[0];
}

/// Whole bytes everywhere: what the kernel of element-wise groups takes.
bool holds_bytes(const Graph& body) {
  for (std::uint32_t v = 0; v < body.value_slots(); ++v)
    if (body.value({v}).kind != ValueKind::none && bits_of(body.type({v}).element) < 8) return false;
  return true;
}

}  // namespace

std::optional<Graph> later_stages(const Node& node, std::size_t kept) {
  const Graph& body = *epilogue(node);
  const auto order = body.order();
  const auto crossing = single_crossing(body, order, kept);
  if (!crossing.valid()) return std::nullopt;
  Graph rest;
  std::vector<ValueId> map(body.value_slots());
  map[crossing.index] = rest.add_input(body.value(crossing).name, body.type(crossing));
  for (std::size_t p = 1; p < body.inputs().size(); ++p) {
    const auto v = body.inputs()[p];
    map[v.index] = rest.add_input(body.value(v).name, body.type(v));
  }
  for (std::size_t i = kept; i < order.size(); ++i) {
    const Node& n = body.node(order[i]);
    std::vector<ValueId> in;
    for (auto v : n.inputs) {
      if (v.valid() && !map[v.index].valid()) map[v.index] = rest.add_constant(*body.constant(v));
      in.push_back(v.valid() ? map[v.index] : ValueId{});
    }
    map[n.outputs[0].index] = rest.add(n.op, in, n.name);
  }
  rest.add_result("y", map[body.results()[0].value.index]);
  return rest;
}

double stage_cost(const Machine& machine, const Op& op, std::size_t elements) {
  const bool math = op.is<Sigmoid>() || op.is<Tanh>() || op.is<Exp>() || op.is<Log>() || op.is<Mish>() ||
                    op.is<SoftPlus>() || op.is<Elu>() || op.is<Gelu>() || op.is<Swish>();
  const bool steps = op.is<FakeQuantize>() || op.is<Quantize>() || op.is<Divide>();
  const double work = static_cast<double>(elements) * (math ? 1.2 : steps ? 1.5 : 0.3);
  const auto family = math ? Family::vector_math : Family::vector_light;
  return cost_of(machine, family, work) - cost_of(machine, family, 0);
}

std::size_t split_epilogue(Graph& graph, NodeId id, std::size_t stages) {
  const Graph body = *epilogue(graph.node(id));
  const auto order = body.order();
  std::size_t kept = std::min(stages, order.size());
  ValueId crossing = single_crossing(body, order, kept);
  while (!crossing.valid()) crossing = single_crossing(body, order, --kept);  // 0 always works
  const Node old = graph.node(id);
  const auto first_extra = base_inputs(old);
  const auto old_output = old.outputs[0];

  // The node with the first stages.
  std::vector<Graph> front_bodies;
  std::vector<ValueId> front_inputs(old.inputs.begin(),
                                    old.inputs.begin() + static_cast<std::ptrdiff_t>(first_extra));
  if (kept > 0) {
    Graph front = body;
    front.set_result(0, crossing);
    front.erase_unused();
    Graph clean;  // with only the parameters that are still read
    std::vector<ValueId> map(front.value_slots());
    map[front.inputs()[0].index] =
        clean.add_input(front.value(front.inputs()[0]).name, front.type(front.inputs()[0]));
    for (std::size_t p = 1; p < front.inputs().size(); ++p) {
      const auto v = front.inputs()[p];
      if (front.readers(v) == 0) continue;
      map[v.index] = clean.add_input(front.value(v).name, front.type(v));
      front_inputs.push_back(old.inputs[first_extra + p - 1]);
    }
    for (const auto n : front.order()) {
      std::vector<ValueId> in;
      for (auto v : front.node(n).inputs) {
        if (v.valid() && !map[v.index].valid())
          map[v.index] = clean.add_constant(*front.constant(v), front.value(v).name);
        in.push_back(v.valid() ? map[v.index] : ValueId{});
      }
      map[front.node(n).outputs[0].index] = clean.add(front.node(n).op, in, front.node(n).name);
    }
    clean.add_result(body.results()[0].name, map[crossing.index]);
    front_bodies.push_back(std::move(clean));
  } else {
    while (!front_inputs.empty() && !front_inputs.back().valid()) front_inputs.pop_back();
  }
  if (old.bodies.size() > 1) {  // others behind the epilogue stay
    if (front_bodies.empty()) front_bodies.push_back(no_stages(body));
    front_bodies.insert(front_bodies.end(), old.bodies.begin() + 1, old.bodies.end());
  }
  const auto front = graph.add_node(old.op, front_inputs, old.name, -1, std::move(front_bodies));
  graph.set_sources(front, old.sources);

  // The rest behind it.
  std::vector<ValueId> map(body.value_slots());
  map[crossing.index] = graph.node(front).outputs[0];
  for (std::size_t p = 1; p < body.inputs().size(); ++p)
    if (!map[body.inputs()[p].index].valid()) map[body.inputs()[p].index] = old.inputs[first_extra + p - 1];
  const std::vector<NodeId> later(order.begin() + static_cast<std::ptrdiff_t>(kept), order.end());
  const auto last = later.size() > 1 && holds_bytes(body)
                        ? add_together(graph, body, later, old, map, crossing)
                        : add_one_by_one(graph, body, later, old, map);
  const auto name = graph.value(old_output).name;
  graph.replace(old_output, last);
  graph.erase(id);
  graph.set_value_name(last, name);
  return kept;
}

}  // namespace lamina
