/// Attention said with other operators.
#include <algorithm>
#include <cctype>
#include <cmath>

#include "ops/attention.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/reduction.h"

namespace lamina {
namespace {

bool has(const Node& n, std::size_t input) { return input < n.inputs.size() && n.inputs[input].valid(); }

/// Nothing when it is computed, or the size of a head is unknown.
std::optional<double> scale_of(const Graph& g, const Node& n) {
  if (has(n, 4)) {
    const auto* scale = g.constant(n.inputs[4]);
    return scale ? std::optional(to_doubles(*scale).at(0)) : std::nullopt;
  }
  const auto& q = g.type(n.inputs[0]).shape;
  if (!q.ranked() || !q[q.rank() - 1].known()) return std::nullopt;
  return 1 / std::sqrt(static_cast<double>(q[q.rank() - 1].size()));
}

MatMul by_keys() {
  MatMul op;
  op.transpose_b = true;
  return op;
}

TensorType scores_type(const MatMul& op, const TensorType& query, const TensorType& key) {
  Graph g;
  return g.type(g.add(op, {g.add_input("q", query), g.add_input("k", key)}));
}

/// y = scores * scale + mask.
Graph scores_epilogue(const TensorType& scores, double scale, const TensorType* mask) {
  Graph body;
  auto y = body.add_input("scores", scores);
  if (scale != 1)
    y = body.add(Multiply{}, {y, body.add_constant(from_doubles(scores.element, {}, {scale}), "scale")});
  if (mask) y = body.add(Add{}, {y, body.add_input("mask", *mask)});
  body.add_result("y", y);
  return body;
}

/// Type of a layer of the file, in lower case.
std::string type_of(const Graph& graph, SourceId s) {
  auto type = s.index < graph.sources.size() ? graph.sources[s.index].type : "";
  for (auto& c : type) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return type;
}

/// Layers of the file before its Softmax made the scores, those behind it the product. Without one, as where
/// attention was a layer of the file, all three parts come from all of them.
void share_sources(Graph& graph, const std::vector<SourceId>& all, const std::vector<NodeId>& parts) {
  const auto softmax =
      std::find_if(all.begin(), all.end(), [&](SourceId s) { return type_of(graph, s) == "softmax"; });
  const bool known = softmax != all.end() && softmax != all.begin() && softmax + 1 != all.end();
  const auto first = known ? softmax : all.end(), last = known ? softmax + 1 : all.begin();
  graph.set_sources(parts[0], {all.begin(), first});
  graph.set_sources(parts[1], known ? std::vector<SourceId>{*softmax} : all);
  graph.set_sources(parts[2], {last, all.end()});
  if (!known) return;
  graph.set_node_name(parts[1], graph.sources[softmax->index].name);
  for (auto s = all.begin(); s != softmax; ++s)  // the last of them made the scores
    if (type_of(graph, *s).find("matmul") != std::string::npos)
      graph.set_node_name(parts[0], graph.sources[s->index].name);
}

}  // namespace

bool ScaledDotProductAttention::can_decompose(const Graph& graph, const Node& n) const {
  if (causal || !scale_of(graph, n)) return false;
  if (!has(n, 3)) return true;
  const auto &q = graph.type(n.inputs[0]), &mask = graph.type(n.inputs[3]);
  if (mask.element != q.element) return false;
  // Inside the product the mask must not make it larger, as one with the values' own batches would.
  const auto scores = scores_type(by_keys(), q, graph.type(n.inputs[1])).shape;
  const auto masked = broadcast(scores, mask.shape);
  return masked && masked->same(scores);
}

std::vector<NodeId> ScaledDotProductAttention::decompose(Graph& graph, const Node& n) const {
  std::vector<ValueId> in{n.inputs[0], n.inputs[1]};
  const auto* mask = has(n, 3) ? &graph.type(n.inputs[3]) : nullptr;
  const auto type = scores_type(by_keys(), graph.type(in[0]), graph.type(in[1]));
  std::vector<Graph> bodies;
  if (auto body = scores_epilogue(type, *scale_of(graph, n), mask); body.node_count() != 0)
    bodies.push_back(std::move(body));
  if (mask) {
    in.resize(MatMul::info.max_inputs);
    in.push_back(n.inputs[3]);
  }
  const auto named = [&](const std::string& part) { return n.name.empty() ? "" : n.name + part; };
  const auto scores = graph.add_node(by_keys(), std::move(in), named("/scores"), -1, std::move(bodies));
  const auto softmax = graph.add_node(Softmax{-1}, {graph.node(scores).outputs[0]}, named("/weights"));
  const auto product = graph.add_node(MatMul{}, {graph.node(softmax).outputs[0], n.inputs[2]}, n.name);
  const std::vector<NodeId> parts{scores, softmax, product};
  share_sources(graph, n.sources, parts);
  return parts;
}

}  // namespace lamina
