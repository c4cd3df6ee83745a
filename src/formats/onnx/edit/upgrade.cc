#include "formats/onnx/edit/upgrade.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "ops/eval.h"

namespace lamina::onnx {
namespace {

using TypeOf = std::function<std::optional<TensorType>(const std::string&)>;

Tensor ints_tensor(const Ints& values) { return Tensor::of({std::ssize(values)}, values); }

class Upgrade {
 public:
  Upgrade(EditModel& model, const TypeOf& type_of) : model_(model), from_(model.opset()), type_of_(type_of) {}

  void run() {
    for (auto& node : model_.graph.nodes) change_bodies(node, [&](EditGraph& body) { upgrade(body); });
    upgrade(model_.graph);
    if (!refused_.empty())
      fail(ErrorCode::unsupported, "opset {} has operators whose meaning opset {} has changed: {}", from_,
           kQuantisingOpset, fmt::join(refused_, ", "));
    model_.opsets[""] = kQuantisingOpset;
  }

 private:
  /// Upgrades a graph, without bodies in it.
  void upgrade(EditGraph& graph) {
    std::vector<EditNode> nodes;
    graph_ = &graph;
    for (auto& node : graph.nodes)
      if (node.domain.empty())
        rewrite(std::move(node), nodes);
      else
        nodes.push_back(std::move(node));
    graph.nodes = std::move(nodes);
  }

  std::string constant(const EditNode& node, std::string_view what, const Tensor& tensor) {
    const auto name = fmt::format("{}_{}_opset13", node.outputs.empty() ? node.name : node.outputs[0], what);
    graph_->initializers.push_back(initializer(name, tensor));
    return name;
  }

  /// An attribute of integers that has become input `at`.
  void ints_to_input(EditNode& node, std::string_view name, std::size_t at) {
    const auto values = node.ints_attribute(name);
    node.remove_attribute(name);
    if (values) set_input(node, at, constant(node, name, ints_tensor(*values)));
  }

  static void set_input(EditNode& node, std::size_t at, std::string name) {
    if (node.inputs.size() <= at) node.inputs.resize(at + 1);
    node.inputs[at] = std::move(name);
  }

  void rewrite(EditNode node, std::vector<EditNode>& out) {
    const auto& type = node.op_type;
    if (type == "Squeeze" || type == "Unsqueeze") ints_to_input(node, "axes", 1);
    if (type == "ReduceSum") ints_to_input(node, "axes", 1);
    if (type == "Split") ints_to_input(node, "split", 1);
    if (type == "Dropout" && from_ < 12) node.remove_attribute("ratio");
    if (type == "BatchNormalization" && from_ < 9) rewrite_batch_normalisation(node);
    if (type == "Clip" && from_ < 11) rewrite_clip(node);
    if (type == "Pad" && from_ < 11) rewrite_pad(node);
    if (type == "Slice" && from_ < 10) rewrite_slice(node);
    if (type == "TopK" && from_ < 10) rewrite_topk(node);
    if (type == "Scatter") node.op_type = "ScatterElements";
    if (type == "Upsample" || (type == "Resize" && from_ < 11)) rewrite_resize(node);
    if (type == "Softmax" || type == "LogSoftmax" || type == "Hardmax")
      return rewrite_softmax(std::move(node), out);
    if (type == "Scan" && from_ < 9) refused_.insert("Scan-8");
    out.push_back(std::move(node));
  }

  void rewrite_batch_normalisation(EditNode& node) {
    if (node.int_attribute("spatial").value_or(1) == 0) refused_.insert("BatchNormalization with spatial=0");
    node.remove_attribute("spatial");
  }

  /// A number of the type of what the node reads; f32 where that is not known.
  std::string number(const EditNode& node, std::string_view what, float value) {
    const auto type = node.inputs.empty() ? std::nullopt : type_of_(node.inputs[0]);
    const bool known = type && is_float(type->element);
    return constant(node, what, convert(Tensor::scalar(value), known ? type->element : ElementType::f32));
  }

  void rewrite_clip(EditNode& node) {
    const auto low = node.float_attribute("min"), high = node.float_attribute("max");
    node.remove_attribute("min");
    node.remove_attribute("max");
    if (low) set_input(node, 1, number(node, "min", *low));
    if (high) set_input(node, 2, number(node, "max", *high));
  }

  void rewrite_pad(EditNode& node) {
    const auto value = node.float_attribute("value");
    ints_to_input(node, "pads", 1);
    node.remove_attribute("value");
    if (value) set_input(node, 2, number(node, "value", *value));
  }

  void rewrite_slice(EditNode& node) {
    auto axes = node.ints_attribute("axes");
    if (const auto starts = node.ints_attribute("starts"); !axes && starts) {
      axes.emplace();
      for (std::size_t i = 0; i < starts->size(); ++i) axes->push_back(static_cast<std::int64_t>(i));
    }
    ints_to_input(node, "starts", 1);
    ints_to_input(node, "ends", 2);
    node.remove_attribute("axes");
    if (axes) set_input(node, 3, constant(node, "axes", ints_tensor(*axes)));
  }

  void rewrite_topk(EditNode& node) {
    const auto k = node.int_attribute("k").value_or(1);
    node.remove_attribute("k");
    set_input(node, 1, constant(node, "k", ints_tensor({k})));
  }

  /// Upsample, and Resize before there were modes of coordinates: at x / scale, rounded down.
  void rewrite_resize(EditNode& node) {
    std::string scales;
    if (const auto values = node.floats_attribute("scales")) {
      scales = constant(node, "scales", Tensor::of({std::ssize(*values)}, *values));
      node.remove_attribute("scales");
    } else if (node.inputs.size() > 1) {
      scales = node.inputs[1];
    }
    node.op_type = "Resize";
    node.inputs = {node.inputs.at(0), "", scales};
    const auto mode = node.string_attribute("mode").value_or("nearest");
    node.set_attribute("mode", mode == "bilinear" || mode == "trilinear" ? "linear" : mode);
    node.set_attribute("coordinate_transformation_mode", "asymmetric");
    if (mode == "nearest") node.set_attribute("nearest_mode", "floor");
  }

  /// Before opset 13 all axes from `axis` on are one.
  void rewrite_softmax(EditNode node, std::vector<EditNode>& out) {
    const auto axis = node.int_attribute("axis").value_or(1);
    const auto type = node.inputs.empty() ? std::nullopt : type_of_(node.inputs[0]);
    const bool ranked = type && type->shape.ranked();
    if (axis == -1 || (ranked && axis + 1 == static_cast<std::int64_t>(type->shape.rank()))) {
      node.set_attribute("axis", axis);
      return out.push_back(std::move(node));
    }
    const auto x = node.inputs.at(0), y = node.outputs.at(0);
    EditNode flat{.inputs = {x}, .outputs = {y + "_flat_opset13"}, .op_type = "Flatten"};
    flat.set_attribute("axis", axis);
    node.set_attribute("axis", std::int64_t{-1});
    node.inputs[0] = flat.outputs[0];
    node.outputs[0] = y + "_rows_opset13";
    EditNode shape{.inputs = {x}, .outputs = {y + "_shape_opset13"}, .op_type = "Shape"};
    EditNode back{.inputs = {node.outputs[0], shape.outputs[0]}, .outputs = {y}, .op_type = "Reshape"};
    for (auto* n : {&flat, &node, &shape, &back}) out.push_back(std::move(*n));
  }

  EditModel& model_;
  const std::int64_t from_;
  const TypeOf& type_of_;
  EditGraph* graph_ = nullptr;
  std::set<std::string> refused_;
};

/// Before IR 4 every initialiser had to be an input, too; what is one since can be overridden.
void drop_inputs_that_are_constants(EditGraph& graph) {
  std::set<std::string_view> constants;
  for (const auto& t : graph.initializers) constants.insert(t.name);
  std::erase_if(graph.inputs, [&](const NamedPiece& v) { return constants.contains(v.name); });
}

}  // namespace

void upgrade(EditModel& model, const TypeOf& type_of) {
  constexpr std::int64_t kOldest = 7, kIrVersion = 7;
  if (model.ir_version < 4) drop_inputs_that_are_constants(model.graph);
  if (model.opset() < kQuantisingOpset) {
    if (model.opset() < kOldest)
      fail(ErrorCode::unsupported, "opset {}, wanted {} or newer", model.opset(), kOldest);
    if (model.has_functions)
      fail(ErrorCode::unsupported, "functions of opset {} in the model, wanted opset {} or newer",
           model.opset(), kQuantisingOpset);
    Upgrade(model, type_of).run();
  }
  model.ir_version = std::max(model.ir_version, kIrVersion);
}

}  // namespace lamina::onnx
