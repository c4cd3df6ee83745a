#include "formats/known.h"

#include <map>
#include <vector>

#include "graph/infer.h"
#include "ops/check_sizes.h"
#include "ops/eval.h"

namespace lamina {
namespace {

constexpr std::size_t kMostKnown = 4096;  // elements of a value that is followed back to constants
constexpr int kMostSteps = 512;           // nodes on the way

/// Evaluates small subgraphs of constants and known shapes.
class Folder {
 public:
  Folder(const Graph& graph, int& budget) : graph_(graph), budget_(budget) {}

  std::optional<Tensor> value(ValueId v, int depth = 0) {
    if (!v.valid()) return std::nullopt;
    if (const auto* t = graph_.constant(v)) return t->to_aligned();
    if (const auto it = done_.find(v); it != done_.end()) return it->second;
    auto result = computed(v, depth);
    done_[v] = result;
    return result;
  }

 private:
  std::optional<Tensor> computed(ValueId v, int depth) {
    const auto producer = graph_.producer(v);
    if (!producer.valid() || depth > 64 || ++steps_ > kMostSteps || --budget_ < 0) return std::nullopt;
    const Node& node = graph_.node(producer);
    if (!node.bodies.empty() || node.op.has(Trait::impure)) return std::nullopt;
    if (node.op.info().name == "ShapeOf") return shape_of(node, graph_.type(v).element);
    if (auto number = number_of_sizes(node, v)) return number;
    std::vector<Tensor> inputs;
    for (auto i : node.inputs) {
      auto t = i.valid() ? value(i, depth + 1) : Tensor{};
      if (!t || t->size() > kMostKnown) return is_shape(i) ? sizes(v) : std::nullopt;
      inputs.push_back(std::move(*t));
    }
    InferContext types(node, inputs);
    node.op->infer(types);
    for (const auto& type : types.result())
      if (!is_small(type)) return std::nullopt;
    return evaluate_node(node, inputs, {}).at(graph_.value(v).output);
  }

  /// How many sizes are checked does not depend on what they are: the reader may use the number, while the
  /// error stays with the node.
  std::optional<Tensor> number_of_sizes(const Node& node, ValueId v) const {
    if (!node.op.is<CheckSizes>() || graph_.value(v).output != 1) return std::nullopt;
    const auto count = graph_.type(node.inputs.at(0)).shape.count();
    return count.known() ? std::optional(Tensor::scalar<std::int64_t>(count.size())) : std::nullopt;
  }

  bool is_shape(ValueId v) const {
    const auto producer = graph_.producer(v);
    return producer.valid() && graph_.node(producer).op.info().name == "ShapeOf";
  }

  /// The sizes that are read from a shape that is known in part.
  std::optional<Tensor> sizes(ValueId v) const {
    const auto& type = graph_.type(v);
    const auto dims = dims_of_value(graph_, v);
    if (!dims || !is_small(type) || type.shape.count().size() != std::ssize(*dims)) return std::nullopt;
    Ints values;
    for (const auto& d : *dims) {
      if (!d.known()) return std::nullopt;
      values.push_back(d.size());
    }
    return from_ints(type.element, type.shape.sizes(), values);
  }

  static bool is_small(const TensorType& type) {
    if (!type.shape.known() || type.element == ElementType::undefined) return false;
    return type.shape.count().size() <= static_cast<std::int64_t>(kMostKnown);
  }

  std::optional<Tensor> shape_of(const Node& node, ElementType type) const {
    const auto& shape = graph_.type(node.inputs.at(0)).shape;
    if (!shape.known()) return std::nullopt;
    const auto sizes = shape.sizes();
    return from_ints(type, {static_cast<std::int64_t>(sizes.size())}, sizes);
  }

  const Graph& graph_;
  std::map<ValueId, std::optional<Tensor>> done_;
  int steps_ = 0;
  int& budget_;  // of the whole model
};

}  // namespace

std::optional<Tensor> known_value(const Graph& graph, ValueId value, int& budget) {
  return Folder(graph, budget).value(value);
}

}  // namespace lamina
