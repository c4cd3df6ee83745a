#include "quantise/write_onnx.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "formats/onnx/edit/upgrade.h"
#include "ops/elementwise.h"
#include "ops/eval.h"
#include "rules/support.h"

namespace lamina {
namespace {

using onnx::EditGraph;
using onnx::EditModel;
using onnx::EditNode;

using NodeIndex = std::map<std::string, std::size_t, std::less<>>;

NodeIndex makers_of(const EditGraph& graph) {
  NodeIndex out;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    for (const auto& name : graph.nodes[i].outputs)
      if (!name.empty()) out.emplace(name, i);
  return out;
}

bool is_plain_gemm(const EditNode& node) {
  return node.float_attribute("alpha").value_or(1) == 1 && node.float_attribute("beta").value_or(1) == 1 &&
         node.int_attribute("transA").value_or(0) == 0;
}

bool is_layer(const EditNode& node) {
  if (!node.domain.empty() || node.inputs.size() < 2) return false;
  return node.op_type == "Conv" || node.op_type == "ConvTranspose" || node.op_type == "MatMul" ||
         (node.op_type == "Gemm" && is_plain_gemm(node));
}

bool is_sum(const EditNode& node) {
  return node.domain.empty() && node.inputs.size() == 2 && (node.op_type == "Add" || node.op_type == "Sub");
}

/// One model that is being changed.
class Editing {
 public:
  Editing(EditModel model, const Graph& read, const Graph& graph, const Scheme& scheme)
      : m_(std::move(model)), read_(read), g_(graph), scheme_(scheme) {
    take_names(m_.graph);
    for (const auto& node : m_.graph.nodes)
      onnx::each_body(node, [&](const EditGraph& body) { take_names(body); });
  }

  std::string run(const std::vector<Absorbed>& absorbed) {
    absorb(absorbed);
    makers_ = makers_of(m_.graph);
    for (const auto& layer : scheme_.layers) set_layer(layer);
    for (const auto id : g_.order())
      if (g_.node(id).op.is<Add>() || g_.node(id).op.is<Subtract>()) set_sum(id);
    for (const auto& use : scheme_.places.uses) set_use(use);
    insert();
    onnx::remove_unread(m_.graph, was_read_);
    return onnx::to_bytes(m_);
  }

 private:
  void take_names(const EditGraph& graph) {
    for (const auto& n : graph.nodes) names_.insert(n.outputs.begin(), n.outputs.end());
    for (const auto* list : {&graph.initializers, &graph.inputs})
      for (const auto& t : *list) names_.insert(t.name);
  }

  std::string fresh(const std::string& wanted) {
    auto name = wanted;
    for (int i = 1; !names_.insert(name).second; ++i) name = fmt::format("{}_{}", wanted, i);
    return name;
  }

  std::string add_tensor(const std::string& wanted, const Tensor& t) {
    const auto name = fresh(wanted);
    m_.graph.initializers.push_back(onnx::initializer(name, t));
    return name;
  }

  /// The layer gives what the node behind it gave.
  void absorb(const std::vector<Absorbed>& absorbed) {
    const auto makers = makers_of(m_.graph);
    std::set<std::size_t> gone;
    for (const auto& a : absorbed) {
      const auto layer = makers.find(a.layer_output), node = makers.find(a.output);
      if (layer == makers.end() || node == makers.end())
        fail(ErrorCode::internal, "no node of the file makes \"{}\"", a.output);
      for (const auto& input : m_.graph.nodes[node->second].inputs)
        if (input != a.layer_output) was_read_.push_back(input);
      gone.insert(node->second);
      auto& name = m_.graph.nodes[layer->second].outputs[0];
      std::erase_if(m_.graph.values, [&](const auto& v) { return v.name == name; });
      name = a.output;
    }
    std::vector<EditNode> left;
    for (std::size_t i = 0; i < m_.graph.nodes.size(); ++i)
      if (!gone.contains(i)) left.push_back(std::move(m_.graph.nodes[i]));
    m_.graph.nodes = std::move(left);
  }

  EditNode* node_of(NodeId id) {
    for (const auto v : g_.node(id).outputs)
      if (const auto it = makers_.find(g_.value(v).name); it != makers_.end())
        return &m_.graph.nodes[it->second];
    return nullptr;
  }

  void replace(EditNode& node, std::size_t input, std::string name) {
    if (node.inputs.size() <= input) node.inputs.resize(input + 1);
    if (!node.inputs[input].empty()) was_read_.push_back(node.inputs[input]);
    node.inputs[input] = std::move(name);
  }

  void set_layer(const Layer& layer) {
    if (!layer.node.valid()) return;
    auto* node = node_of(layer.node);
    const auto& inputs = g_.node(layer.node).inputs;
    if (!node || !is_layer(*node)) {  // it has a reason for f32
      LAMINA_CHECK(!changed(layer.node, 1) && (inputs.size() < 3 || !changed(layer.node, 2)),
                   "{} has changed, which is no layer in the file", layer.name);
      return;
    }
    const auto weights = scheme_.weights.find(layer.node);
    if (weights != scheme_.weights.end()) return quantise_layer(layer, *node, weights->second);
    for (std::size_t i = 1; i < std::min<std::size_t>(inputs.size(), 3); ++i)
      if (inputs[i].valid() && changed(layer.node, i))
        replace(*node, i,
                add_tensor(node->outputs[0] + (i == 1 ? "_weights" : "_bias"), *g_.constant(inputs[i])));
  }

  /// A constant that is added to channels was scaled with them.
  void set_sum(NodeId id) {
    const auto& inputs = g_.node(id).inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!changed(id, i)) continue;
      const auto* constant = g_.constant(inputs[i]);
      if (!constant) continue;  // another name of what a layer gives
      auto* node = node_of(id);
      LAMINA_CHECK(node && is_sum(*node), "{} has changed, which is no sum in the file", g_.label(id));
      replace(*node, i, add_tensor(node->outputs[0] + "_summand", *constant));
    }
  }

  bool changed(NodeId id, std::size_t input) const {
    const auto &was = read_.node(id).inputs, &is = g_.node(id).inputs;
    return was.size() <= input || !(was[input] == is[input]);
  }

  void quantise_layer(const Layer& layer, EditNode& node, const QuantisedWeights& q) {
    const auto base = node.inputs[1];
    replace(node, 1, dequantised(base, q.levels, q.scales, static_cast<std::int64_t>(q.axis), true));
    const auto corrected = scheme_.biases.find(layer.node);
    const auto& own = g_.node(layer.node);
    const Tensor* bias = corrected != scheme_.biases.end() ? &corrected->second
                         : has_input(own, 2)               ? g_.constant(own.inputs[2])
                                                           : nullptr;
    if (!bias) return;
    const auto name = node.outputs[0] + "_bias";
    const auto levels = bias_levels(*bias, scheme_.of(own.inputs[0]).scale, q);
    if (!levels.first.valid())
      replace(node, 2, add_tensor(name, *bias));
    else
      replace(node, 2, dequantised(name, levels.first, levels.second, 0, false));
  }

  /// In units of the products, as integer kernels add it; or nothing.
  static std::pair<Tensor, std::vector<float>> bias_levels(const Tensor& bias, float scale,
                                                           const QuantisedWeights& q) {
    const auto numbers = to_floats(bias);
    if (bias.rank() != 1 || (q.scales.size() != 1 && q.scales.size() != numbers.size())) return {};
    std::vector<float> scales;
    for (const float s : q.scales) scales.push_back(scale * s);
    std::vector<std::int32_t> levels;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const double level =
          std::nearbyint(numbers[i] / static_cast<double>(scales[scales.size() == 1 ? 0 : i]));
      if (!(std::fabs(level) <= std::numeric_limits<std::int32_t>::max())) return {};
      levels.push_back(static_cast<std::int32_t>(level));
    }
    return {Tensor::of(bias.shape(), levels), std::move(scales)};
  }

  /// A constant behind DequantizeLinear.
  std::string dequantised(const std::string& base, const Tensor& levels, const std::vector<float>& scales,
                          std::int64_t axis, bool zero_points) {
    const Dims dims = scales.size() == 1 ? Dims{} : Dims{std::ssize(scales)};
    EditNode node{.inputs = {add_tensor(base + "_levels", levels),
                             add_tensor(base + "_scale", Tensor::of(dims, scales))},
                  .outputs = {fresh(base + "_dequantised")},
                  .op_type = "DequantizeLinear"};
    if (zero_points)
      node.inputs.push_back(add_tensor(base + "_zero_point", Tensor(levels.element_type(), dims)));
    if (scales.size() > 1) node.set_attribute("axis", axis);
    node.name = node.outputs[0];
    auto name = node.outputs[0];
    made_.emplace(name, std::vector<EditNode>{std::move(node)});
    return name;
  }

  /// The value that a name of the file stands for: other names of it are those of nodes that do nothing.
  ValueId value_of(std::string name) const {
    for (int i = 0; i < 64; ++i) {
      if (const auto v = g_.find_value(name); v.valid()) return v;
      const auto it = makers_.find(name);
      if (it == makers_.end() || m_.graph.nodes[it->second].inputs.empty()) return {};
      name = m_.graph.nodes[it->second].inputs[0];
    }
    return {};
  }

  void set_use(const QuantisedUse& use) {
    auto* node = node_of(use.node);
    const auto v = g_.node(use.node).inputs[use.input];
    if (!node || use.input >= node->inputs.size() || !(value_of(node->inputs[use.input]) == v)) return;
    auto& name = node->inputs[use.input];
    auto& levels = levels_[name];
    if (levels.empty()) levels = quantised(name, scheme_.of(v));
    name = levels;
  }

  std::string quantised(const std::string& name, const Quantiser& q) {
    const auto scale = add_tensor(name + "_scale", Tensor::scalar(q.scale));
    const auto zero = q.type == ElementType::u8 ? Tensor::scalar(static_cast<std::uint8_t>(q.zero_point))
                                                : Tensor::scalar(static_cast<std::int8_t>(q.zero_point));
    const auto zero_point = add_tensor(name + "_zero_point", zero);
    EditNode down{.inputs = {name, scale, zero_point},
                  .outputs = {fresh(name + "_quantised")},
                  .op_type = "QuantizeLinear"};
    EditNode up{.inputs = {down.outputs[0], scale, zero_point},
                .outputs = {fresh(name + "_dequantised")},
                .op_type = "DequantizeLinear"};
    down.name = down.outputs[0];
    up.name = up.outputs[0];
    auto out = up.outputs[0];
    made_.emplace(out, std::vector<EditNode>{std::move(down), std::move(up)});
    return out;
  }

  /// What was made stands before its first reader.
  void insert() {
    std::vector<EditNode> nodes;
    for (auto& node : m_.graph.nodes) {
      for (const auto& name : node.inputs)
        if (const auto it = made_.find(name); it != made_.end()) {
          for (auto& made : it->second) nodes.push_back(std::move(made));
          made_.erase(it);
        }
      nodes.push_back(std::move(node));
    }
    m_.graph.nodes = std::move(nodes);
  }

  EditModel m_;
  const Graph &read_, &g_;
  const Scheme& scheme_;
  std::set<std::string, std::less<>> names_;
  NodeIndex makers_;
  std::map<std::string, std::string> levels_;  // of a value's name, behind both steps
  std::map<std::string, std::vector<EditNode>, std::less<>> made_;
  std::vector<std::string> was_read_;
};

}  // namespace

OnnxFile::OnnxFile(const ModelSource& source, const Graph& graph) : model_(onnx::edit_model(source)) {
  onnx::upgrade(model_, [&](const std::string& name) -> std::optional<TensorType> {
    const auto v = graph.find_value(name);
    return v.valid() ? std::optional(graph.type(v)) : std::nullopt;
  });
  makers_ = makers_of(model_.graph);
}

bool OnnxFile::can_absorb(const Absorbed& absorbed) const {
  const auto layer = makers_.find(absorbed.layer_output), node = makers_.find(absorbed.output);
  if (layer == makers_.end() || node == makers_.end()) return false;
  const auto& normalisation = model_.graph.nodes[node->second];
  return is_layer(model_.graph.nodes[layer->second]) && normalisation.domain.empty() &&
         normalisation.op_type == "BatchNormalization";
}

void OnnxFile::require_nodes(const Graph& graph, std::vector<Layer>& layers) const {
  for (auto& layer : layers) {
    if (!layer.reason.empty()) continue;
    const auto it = makers_.find(graph.value(graph.node(layer.node).outputs[0]).name);
    if (it == makers_.end() || !is_layer(model_.graph.nodes[it->second]))
      layer.reason = "it is no convolution or product by itself in the file";
  }
}

std::set<NodeId> OnnxFile::fixed_sums(const Graph& graph) const {
  std::set<NodeId> out;
  for (const auto id : graph.order()) {
    const auto& op = graph.node(id).op;
    if (!op.is<Add>() && !op.is<Subtract>()) continue;
    const auto it = makers_.find(graph.value(graph.node(id).outputs[0]).name);
    if (it == makers_.end() || !is_sum(model_.graph.nodes[it->second])) out.insert(id);
  }
  return out;
}

std::string OnnxFile::quantised(const Graph& read, const Graph& graph, const std::vector<Absorbed>& absorbed,
                                const Scheme& scheme) const {
  return Editing(model_, read, graph, scheme).run(absorbed);
}

}  // namespace lamina
