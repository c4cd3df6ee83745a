#include "ops/convolution_depthwise.h"

#include <algorithm>

#include "graph/op_model.h"
#include "graph/subgraph.h"
#include "ops/bodies.h"
#include "ops/operators.h"
#include "ops/require.h"

namespace lamina {
namespace {

constexpr std::size_t kInputs = ConvolutionDepthwise::info.max_inputs;  // without those of the epilogue
constexpr std::size_t kConvolutionInputs = Convolution::info.max_inputs;

Convolution depthwise_of(const Window& window, std::int64_t groups) {
  Convolution op;
  static_cast<Window&>(op) = window;
  op.groups = groups;
  return op;
}

/// The depthwise convolution alone, as a graph of tensors of these types (the bias's may be missing).
Graph alone(const Window& window, const std::vector<TensorType>& types) {
  Graph g;
  std::vector<ValueId> in;
  for (const auto& t : types) in.push_back(g.add_input("", t));
  g.add_result("y", g.add(depthwise_of(window, types[1].shape[0].size()), in));
  return g;
}

void check_bodies(const InferContext& c) {
  const auto& bodies = c.bodies();
  c.require(bodies.size() == 2, "{} bodies, wanted 2: the epilogue and the convolution before",
            bodies.size());
  const auto extras = c.node().inputs.size() - std::min(c.node().inputs.size(), kInputs);
  c.require(bodies[0].inputs().size() == 1 + extras && bodies[0].results().size() == 1,
            "the epilogue has {} parameters and {} results, wanted {} and 1", bodies[0].inputs().size(),
            bodies[0].results().size(), 1 + extras);
  c.require(bodies[1].inputs().size() == 1 && bodies[1].results().size() == 1,
            "the convolution before has {} parameters and {} results, wanted 1 and 1",
            bodies[1].inputs().size(), bodies[1].results().size());
  for (const auto& body : bodies)
    c.require(body.results()[0].value.valid(), "result \"{}\" of a body has no value",
              body.results()[0].name);
}

std::vector<SourceId> without(const std::vector<SourceId>& all, const std::vector<SourceId>& some) {
  std::vector<SourceId> out;
  std::set_difference(all.begin(), all.end(), some.begin(), some.end(), std::back_inserter(out));
  return out;
}

}  // namespace

void ConvolutionDepthwise::infer(InferContext& c) const {
  check_bodies(c);
  const auto between = control::types_of_results(c, c.bodies()[1], {c.type(0)}).at(0);
  require_rank(c, 1, 3, 5, "weights");
  const auto& w = c.shape(1);
  if (!w.ranked() || !w[0].known()) return c.set(0, between.element, Shape());
  require_dim(c, w[1], 1, "number of input channels of each group");
  c.require(w[0].size() >= 1, "{} channels, wanted 1 or more", w[0].size());
  std::vector<TensorType> types{between, c.type(1)};
  if (c.has(2)) types.push_back(c.type(2));
  const auto g = alone(*this, types);
  c.set(0, g.type(g.results()[0].value));
}

void ConvolutionDepthwise::evaluate(EvalContext& c) const {
  std::vector<Tensor> in{c.run(c.bodies()[1], {c.in(0)}).at(0), c.in(1)};
  if (c.has(2)) in.push_back(c.in(2));
  std::vector<TensorType> types;
  for (const auto& t : in) types.push_back({t.element_type(), Shape::of(t.shape())});
  c.set(0, c.run(alone(*this, types), in).at(0));
}

NodeWork ConvolutionDepthwise::work(const WorkContext& c) const {
  NodeWork sum{.multiply_adds = c.out() * c.in(1) / c.axis(1, 0)};
  const auto& parent = c.node().bodies.at(1);
  for (const auto id : parent.order()) sum.multiply_adds += work_of(parent, parent.node(id)).multiply_adds;
  return sum;
}

std::vector<NodeId> ConvolutionDepthwise::decompose(Graph& graph, const Node& node) const {
  const Graph &epilogue = node.bodies.at(0), &parent = node.bodies.at(1);
  std::vector<ValueId> in(node.inputs.begin(),
                          node.inputs.begin() + static_cast<std::ptrdiff_t>(base_inputs(node)));
  std::vector<ValueId> map(parent.value_slots());
  map[parent.inputs()[0].index] = in[0];
  auto parts = add_copies(graph, parent, parent.order(), map);
  in[0] = map[parent.results()[0].value.index];
  while (!in.back().valid()) in.pop_back();
  std::vector<Graph> bodies;
  if (epilogue.node_count() != 0) bodies.push_back(epilogue);
  if (node.inputs.size() > kInputs) {
    in.resize(kConvolutionInputs);
    in.insert(in.end(), node.inputs.begin() + kInputs, node.inputs.end());
  }
  // A rule may have moved a part of the second convolution into the first: both stand for that layer.
  auto before = graph.node(graph.producer(in[0])).sources;
  std::erase_if(before, [&](SourceId s) {
    return s.index < graph.sources.size() && graph.sources[s.index].name == node.name;
  });
  for (const auto id : epilogue.order()) before = without(before, epilogue.node(id).sources);
  const auto groups = graph.type(in[1]).shape[0].size();
  parts.push_back(
      graph.add_node(depthwise_of(*this, groups), std::move(in), node.name, -1, std::move(bodies)));
  graph.set_sources(parts.back(), without(node.sources, before));
  return parts;
}

void register_convolution_depthwise(Registry& r) { r.add<ConvolutionDepthwise>(); }

}  // namespace lamina
