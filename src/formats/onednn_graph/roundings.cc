#include "formats/onednn_graph/roundings.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/element_types.h"

namespace lamina::onednn_graph {
namespace {

bool is_product(const OpDef& op) {
  const bool known = op.kind == "Convolution" || op.kind == "ConvTranspose" || op.kind == "MatMul";
  return known && op.inputs.size() >= 2 && op.outputs.size() == 1 && is_half(op.outputs[0].element);
}

bool is_arithmetic(const OpDef& op) {
  constexpr std::string_view kKinds[] = {
      "Abs",         "Add",       "BiasAdd",   "Clamp",    "Divide",  "Elu",     "Exp",      "GELU",
      "HardSigmoid", "HardSwish", "LeakyReLU", "Log",      "Maximum", "Minimum", "Mish",     "Multiply",
      "ReLU",        "Round",     "Sigmoid",   "SoftPlus", "Sqrt",    "Square",  "Subtract", "Tanh"};
  return op.outputs.size() == 1 &&
         std::find(std::begin(kKinds), std::end(kKinds), op.kind) != std::end(kKinds);
}

class Patterns {
 public:
  explicit Patterns(const GraphDef& graph) : graph_(graph) {
    for (std::size_t n = 0; n < graph.ops.size(); ++n) {
      for (const auto& t : graph.ops[n].outputs) producers_.emplace(t.id, n);
      for (const auto& t : graph.ops[n].inputs) {
        if (graph.ops[n].kind == "End")
          results_.insert(t.id);
        else
          readers_[t.id].push_back(n);
      }
    }
    results_.insert(graph.output_ports.begin(), graph.output_ports.end());
  }

  std::unordered_set<std::uint64_t> run() {
    for (const auto& op : graph_.ops) {
      if (!is_product(op) || !cast_of_integers(op.inputs[0]) || !cast_of_integers(op.inputs[1])) continue;
      if (!ends_well(op.outputs[0].id)) continue;
      inside_.insert(&op);
    }
    for (const auto& op : graph_.ops)
      if (op.kind == "TypeCast" && op.outputs.size() == 1 && is_half(op.outputs[0].element) &&
          from_integers(op) && reads_inside(op.outputs[0].id))
        out_.insert(op.outputs[0].id);
    return std::move(out_);
  }

 private:
  const OpDef* maker(std::uint64_t id) const {
    const auto it = producers_.find(id);
    return it == producers_.end() ? nullptr : &graph_.ops[it->second];
  }
  bool from_integers(const OpDef& cast) const {
    const auto* op = cast.inputs.size() == 1 ? maker(cast.inputs[0].id) : nullptr;
    return op && op->kind == "Dequantize";
  }
  bool cast_of_integers(const TensorDef& t) const {
    const auto* op = maker(t.id);
    return op && op->kind == "TypeCast" && from_integers(*op);
  }

  /// The only operation that reads the tensor; null for a result, and where others read it, too.
  const OpDef* only_reader(std::uint64_t id) const {
    const auto it = readers_.find(id);
    return it == readers_.end() || it->second.size() != 1 || results_.contains(id)
               ? nullptr
               : &graph_.ops[it->second[0]];
  }
  bool is_result(std::uint64_t id) const { return !readers_.contains(id); }
  bool is_quantised(std::uint64_t id) const {
    const auto* op = only_reader(id);
    return op && op->kind == "Quantize";
  }

  /// From the product's tensor through arithmetic to a Quantize or a result; notes what is inside. What is
  /// known of a tensor is not found out again.
  bool ends_well(std::uint64_t id) {
    std::vector<std::pair<std::uint64_t, const OpDef*>> way;
    bool good = false;
    for (auto at = id;;) {
      if (const auto known = known_.find(at); known != known_.end()) {
        good = known->second;
        break;
      }
      const auto* op = only_reader(at);
      way.emplace_back(at, op);
      known_[at] = false;  // a cycle ends nowhere
      if (!op) {
        good = is_result(at);
        break;
      }
      if (!is_arithmetic(*op)) {
        good = op->kind == "Quantize" ||
               (op->kind == "TypeCast" && op->outputs.size() == 1 && is_quantised(op->outputs[0].id));
        break;
      }
      at = op->outputs[0].id;
    }
    for (const auto& [tensor, op] : way) {
      known_[tensor] = good;
      if (!good || !op) continue;
      out_.insert(tensor);
      if (is_arithmetic(*op)) inside_.insert(op);
    }
    return good;
  }

  /// True if all readers of the tensor are products and arithmetic of patterns.
  bool reads_inside(std::uint64_t id) const {
    const auto it = readers_.find(id);
    return it != readers_.end() && !results_.contains(id) &&
           std::all_of(it->second.begin(), it->second.end(),
                       [&](auto n) { return inside_.contains(&graph_.ops[n]); });
  }

  const GraphDef& graph_;
  std::unordered_map<std::uint64_t, std::size_t> producers_;
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> readers_;
  std::unordered_set<std::uint64_t> results_, out_;
  std::unordered_map<std::uint64_t, bool> known_;
  std::unordered_set<const OpDef*> inside_;
};

}  // namespace

std::unordered_set<std::uint64_t> unrounded_tensors(const GraphDef& graph) { return Patterns(graph).run(); }

}  // namespace lamina::onednn_graph
