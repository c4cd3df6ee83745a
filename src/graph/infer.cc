#include "graph/infer.h"

#include <array>
#include <cstring>

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

namespace {

template <class T>
Ints read_as(const Tensor& tensor) {
  Ints out(tensor.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    T v;
    std::memcpy(&v, tensor.raw() + i * sizeof(T), sizeof(T));
    out[i] = static_cast<std::int64_t>(v);
  }
  return out;
}

Ints read_packed(const Tensor& tensor) {
  const int bits = bits_of(tensor.element_type());
  Ints out(tensor.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t bit = i * static_cast<std::size_t>(bits);
    int v = (std::to_integer<int>(tensor.raw()[bit / 8]) >> (bit % 8)) & ((1 << bits) - 1);
    if (is_signed(tensor.element_type()) && v >= 1 << (bits - 1)) v -= 1 << bits;
    out[i] = v;
  }
  return out;
}

}  // namespace

Ints to_ints(const Tensor& tensor) {
  switch (tensor.element_type()) {
    case ElementType::i64:
      return read_as<std::int64_t>(tensor);
    case ElementType::i32:
      return read_as<std::int32_t>(tensor);
    case ElementType::i16:
      return read_as<std::int16_t>(tensor);
    case ElementType::i8:
      return read_as<std::int8_t>(tensor);
    case ElementType::u64: {
      auto out = read_as<std::uint64_t>(tensor);
      for (auto& v : out) v = v < 0 ? INT64_MAX : v;
      return out;
    }
    case ElementType::u32:
      return read_as<std::uint32_t>(tensor);
    case ElementType::u16:
      return read_as<std::uint16_t>(tensor);
    case ElementType::u8:
      return read_as<std::uint8_t>(tensor);
    case ElementType::boolean: {
      auto out = read_as<std::uint8_t>(tensor);
      for (auto& v : out) v = v != 0;
      return out;
    }
    case ElementType::u1:
    case ElementType::i4:
    case ElementType::u4:
    case ElementType::i2:
    case ElementType::u2:
      return read_packed(tensor);
    default:
      fail(ErrorCode::bad_file, "tensor holds {}, wanted integers", name_of(tensor.element_type()));
  }
}

}  // namespace lamina
