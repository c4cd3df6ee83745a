#include "quantise/layers.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "ops/convolution.h"
#include "ops/matmul.h"
#include "rewrite/exemptions.h"
#include "rules/support.h"

namespace lamina {
namespace {

bool is_layer(const Node& node) {
  return node.op.is<Convolution>() || node.op.is<ConvolutionBackpropData>() || node.op.is<MatMul>();
}

/// `sources`: those of the outermost graph.
std::string name_of(const Graph& g, const Node& node, const std::vector<Source>& sources) {
  if (!node.name.empty()) return node.name;
  if (node.sources.size() == 1) return sources.at(node.sources[0].index).name;
  return g.value(node.outputs[0]).name;
}

bool all_finite(const Tensor& t) {
  const auto aligned = t.to_aligned();
  const auto numbers = aligned.data<float>();
  return std::all_of(numbers.begin(), numbers.end(), [](float x) { return std::isfinite(x); });
}

std::size_t weights_axis(const Node& node) {
  if (const auto* product = node.op.as<MatMul>()) return product->transpose_b ? 0 : 1;
  return node.op.is<ConvolutionBackpropData>() ? 1 : 0;
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
      fail(ErrorCode::bad_option, "--exclude {}: fits the name of no node", pattern);
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
      if (is_layer(inner))
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
    if (!is_layer(node)) continue;
    Layer layer{
        .node = id, .name = name_of(g, node, g.sources), .type = node.op.name(), .axis = weights_axis(node)};
    layer.reason = reason_for_f32(g, node);
    if (layer.reason.empty()) layer.reason = excluded.reason(node);
    out.push_back(std::move(layer));
  }
  return out;
}

std::size_t input_axis(const Graph& g, NodeId layer) {
  const auto& node = g.node(layer);
  return node.op.is<MatMul>() ? g.type(node.inputs[0]).shape.rank() - 1 : 1;
}

namespace {

/// What the axes of the weights mean.
struct WeightsForm {
  std::size_t first = 1, second = 1, inner = 1;  // sizes; the last of all spatial axes
  std::size_t groups = 1;
  bool output_first = true;
};

WeightsForm form_of(const Graph& g, const Node& node) {
  const auto& dims = g.constant(node.inputs[1])->shape();
  WeightsForm form{.first = static_cast<std::size_t>(dims[0]), .second = static_cast<std::size_t>(dims[1])};
  for (std::size_t i = 2; i < dims.size(); ++i) form.inner *= static_cast<std::size_t>(dims[i]);
  if (const auto* convolution = node.op.as<Convolution>())
    form.groups = static_cast<std::size_t>(convolution->groups);
  if (const auto* transposed = node.op.as<ConvolutionBackpropData>())
    form.groups = static_cast<std::size_t>(transposed->groups);
  form.output_first = weights_axis(node) == 0;
  return form;
}

}  // namespace

std::size_t output_channels(const Graph& g, NodeId layer) {
  const auto form = form_of(g, g.node(layer));
  return form.output_first ? form.first : form.second * form.groups;
}

const Tensor* bias_by_channel(const Graph& g, NodeId layer) {
  const auto& node = g.node(layer);
  const auto* bias = has_input(node, 2) ? g.constant(node.inputs[2]) : nullptr;
  if (!bias || bias->element_type() != ElementType::f32) return nullptr;
  const auto channels = static_cast<std::int64_t>(output_channels(g, layer));
  const auto& dims = bias->shape();
  return element_count(dims) == output_channels(g, layer) && !dims.empty() && dims.back() == channels
             ? bias
             : nullptr;
}

/// Of the first axis each group has its part, of the second all have the same indices.
void for_each_weight(const Graph& g, NodeId layer,
                     const std::function<void(std::size_t, std::size_t, std::size_t)>& f) {
  const auto form = form_of(g, g.node(layer));
  const std::size_t per_group = form.first / form.groups;
  for (std::size_t first = 0, i = 0; first < form.first; ++first)
    for (std::size_t second = 0; second < form.second; ++second) {
      const std::size_t other = first / per_group * form.second + second;
      for (std::size_t k = 0; k < form.inner; ++k, ++i)
        form.output_first ? f(i, other, first) : f(i, first, other);
    }
}

}  // namespace lamina
