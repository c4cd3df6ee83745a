#include "graph/infer.h"

#include "graph/limits.h"

namespace lamina {

InferContext::InferContext(const Graph& graph, const Node& node) : graph_(&graph), node_(node) {
  for (std::size_t i = 0; i < base_inputs(node); ++i) {
    const auto v = node.inputs[i];
    types_.push_back(v.valid() ? graph.type(v) : TensorType{});
    present_.push_back(v.valid());
  }
  out_.resize(node.outputs.size());
}

InferContext::InferContext(const Node& node, const std::vector<Tensor>& inputs)
    : node_(node), tensors_(&inputs) {
  for (std::size_t i = 0; i < std::min(inputs.size(), base_inputs(node)); ++i) {
    const auto& t = inputs[i];
    types_.push_back(t.valid() ? TensorType{t.element_type(), Shape::of(t.shape())} : TensorType{});
    present_.push_back(t.valid());
  }
  out_.resize(node.outputs.size());
}

const TensorType& InferContext::type(std::size_t i) const {
  if (!has(i)) fail("input {} is missing", i);
  return types_[i];
}

/// What was asked for last counts: a value that is no constant may still follow from shapes.
template <class T>
std::optional<T> InferContext::noted(std::size_t i, std::optional<T> value) const {
  if (!has(i) || value.has_value() != lacks(i)) return value;
  lacked_.resize(types_.size());
  lacked_[i] = !value;
  return value;
}

std::optional<Tensor> InferContext::constant(std::size_t i) const {
  if (!has(i)) return std::nullopt;
  if (tensors_) return (*tensors_)[i].to_aligned();
  const auto* t = graph_->constant(node_.inputs[i]);
  return noted(i, t ? std::optional(t->to_aligned()) : std::nullopt);
}

std::optional<Ints> InferContext::ints(std::size_t i) const { return noted(i, known_ints(i)); }

std::optional<Ints> InferContext::known_ints(std::size_t i) const {
  if (!has(i) || !(is_integer(element(i)) || element(i) == ElementType::boolean)) return std::nullopt;
  if (tensors_) return to_ints((*tensors_)[i]);
  if (const auto* t = graph_->constant(node_.inputs[i])) return to_ints(*t);
  const auto symbolic = dims_of_value(*graph_, node_.inputs[i]);
  if (!symbolic) return std::nullopt;
  Ints out;
  for (const auto& d : *symbolic) {
    if (!d.known()) return std::nullopt;
    out.push_back(d.size());
  }
  return out;
}

std::optional<std::vector<Dim>> InferContext::dims(std::size_t i) const {
  if (!has(i)) return std::nullopt;
  if (auto values = ints(i)) return std::vector<Dim>(values->begin(), values->end());
  if (tensors_) return std::nullopt;
  return dims_of_value(*graph_, node_.inputs[i]);
}

void InferContext::set(std::size_t output, TensorType type) {
  if (const auto wrong = beyond_limits(type.shape); !wrong.empty()) fail("output {} {}", output, wrong);
  require_elements([&] { return fmt::format("output {}", output); }, type.shape);
  out_.at(output) = std::move(type);
}

void InferContext::fail_text(const std::string& text) const { throw Error(ErrorCode::bad_file, text); }

}  // namespace lamina
