#include "quantise/layers.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "ops/convolution.h"
#include "ops/matmul.h"
#include "rewrite/exemptions.h"
#include "rules/weights.h"

namespace lamina {
namespace {

/// `sources`: those of the outermost graph.
std::string name_of(const Graph& g, const Node& node, const std::vector<Source>& sources) {
  if (!node.name.empty()) return node.name;
  if (node.sources.size() == 1) return sources.at(node.sources[0].index).name;
  return g.value(node.outputs[0]).name;
}

std::string reason_for_f32(const Graph& g, const Node& node) {
  if (g.type(node.inputs[0]).element != ElementType::f32)
    return "its input is " + std::string(name_of(g.type(node.inputs[0]).element)) + ", not f32";
  const auto* weights = g.constant(node.inputs[1]);
  if (!weights) return "its weights are computed";
  if (weights->element_type() != ElementType::f32)
    return "its weights are " + std::string(name_of(weights->element_type())) + ", not f32";
  if (g.constant(node.inputs[0])) return "its input is constant";
  if (node.op.is<MatMul>() && weights->rank() != 2) return "its weights are no matrix";
  if (node.op.is<MatMul>() && node.op.as<MatMul>()->transpose_a) return "its input is transposed";
  if (node.op.is<MatMul>() &&
      (!g.type(node.inputs[0]).shape.ranked() || g.type(node.inputs[0]).shape.rank() < 2))
    return "its input is no matrix";
  if (weights->size() == 0) return "its weights are empty";
  if (!all_finite(*weights)) return "its weights hold infinities or NaN";
  return {};
}

/// What the user excludes, and whether all of that fitted something.
class Exclusions {
 public:
  Exclusions(const Graph& g, const LayerChoice& choice)
      : g_(g), names_(choice.exclude, "--exclude"), choice_(choice) {
    for (const auto& pattern : names_.idle(g))
      fail(ErrorCode::bad_option, "--exclude {}: matches the name of no node", pattern);
    for (const auto& type : choice.exclude_types) check_type(type);
  }
  std::string reason(const Node& node) const {
    const auto& types = choice_.exclude_types;
    if (std::find(types.begin(), types.end(), node.op.name()) != types.end())
      return "--exclude-type " + node.op.name();
    return names_.covers(node, g_.sources) ? "--exclude" : "";
  }

 private:
  void check_type(const std::string& type) const {
    std::set<std::string> types;
    for (const auto id : g_.order()) types.insert(g_.node(id).op.name());
    if (!types.contains(type))
      fail(ErrorCode::bad_option, "--exclude-type {}: the model has no such operator, it has: {}", type,
           fmt::join(types, ", "));
  }
  const Graph& g_;
  Exemptions names_;
  const LayerChoice& choice_;
};

}  // namespace

namespace {

/// Layers in bodies of the node.
void add_inner(const Node& node, const std::vector<Source>& sources, std::vector<Layer>& out) {
  for (const auto& body : node.bodies)
    for (const auto id : body.order()) {
      const auto& inner = body.node(id);
      if (has_weights(inner))
        out.push_back({.node = {},
                       .name = name_of(body, inner, sources),
                       .type = inner.op.name(),
                       .reason = "it is in the body of a loop or branch"});
      add_inner(inner, sources, out);
    }
}

}  // namespace

std::vector<Layer> layers_of(const Graph& g, const LayerChoice& choice) {
  const Exclusions excluded(g, choice);
  std::vector<Layer> out;
  for (const auto id : g.order()) {
    const auto& node = g.node(id);
    add_inner(node, g.sources, out);
    if (!has_weights(node)) continue;
    Layer layer{.node = id, .name = name_of(g, node, g.sources), .type = node.op.name()};
    layer.reason = reason_for_f32(g, node);
    if (layer.reason.empty()) layer.reason = excluded.reason(node);
    if (layer.reason.empty()) layer.axis = output_axis(g, node);
    out.push_back(std::move(layer));
  }
  return out;
}

std::size_t input_axis(const Graph& g, NodeId layer) {
  const auto& node = g.node(layer);
  return node.op.is<MatMul>() ? g.type(node.inputs[0]).shape.rank() - 1 : 1;
}

const Tensor* bias_by_channel(const Graph& g, NodeId layer) {
  const auto& node = g.node(layer);
  const auto* bias = has_input(node, 2) ? g.constant(node.inputs[2]) : nullptr;
  if (!bias || bias->element_type() != ElementType::f32) return nullptr;
  const auto channels = output_channels(g, node);
  const auto& dims = bias->shape();
  const bool by_channel =
      bias->size() == channels && !dims.empty() && dims.back() == static_cast<std::int64_t>(channels);
  return by_channel ? bias : nullptr;
}

}  // namespace lamina
