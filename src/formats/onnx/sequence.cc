#include "formats/onnx/sequence.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "ops/control.h"

namespace lamina::onnx {
namespace {

constexpr std::string_view kSequence = "sequence";

std::int64_t number_of(const std::string& text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

constexpr std::size_t kHasLength = 5, kSizes = 6;  // places of attributes

/// The node of a sequence has as its attributes: form, axis, whether elements keep it, element type, whether
/// the rank is known, whether a length that is checked is the last input, sizes (-1 where unknown).
Strings written(const Sequence& s, bool has_length) {
  Strings out;
  const auto put = [&](std::int64_t v) { out.push_back(std::to_string(v)); };
  put(static_cast<std::int64_t>(s.form));
  put(s.axis);
  put(s.keeps_axis ? 1 : 0);
  put(static_cast<std::int64_t>(s.item.element));
  put(s.item.shape.ranked() ? 1 : 0);
  put(has_length ? 1 : 0);
  if (s.item.shape.ranked())
    for (const auto& d : s.item.shape.dims()) put(d.known() ? d.size() : -1);
  return out;
}

}  // namespace

bool is_sequence(const Graph& graph, ValueId v) {
  if (!v.valid()) return false;
  const auto producer = graph.producer(v);
  if (!producer.valid()) return false;
  const auto* op = graph.node(producer).op.as<Opaque>();
  return op != nullptr && op->type == kSequence && op->version.empty();  // those of files have a version
}

Sequence sequence_of(const Graph& graph, ValueId v) {
  const auto& node = graph.node(graph.producer(v));
  const auto& said = node.op.as<Opaque>()->attributes;
  Sequence s;
  s.form = static_cast<SequenceForm>(number_of(said.at(0)));
  s.values = node.inputs;
  if (number_of(said.at(kHasLength)) != 0) s.values.pop_back();
  s.axis = number_of(said.at(1));
  s.keeps_axis = number_of(said.at(2)) != 0;
  s.item.element = static_cast<ElementType>(number_of(said.at(3)));
  if (number_of(said.at(4)) != 0) {
    std::vector<Dim> dims;
    for (std::size_t i = kSizes; i < said.size(); ++i) {
      const auto size = number_of(said[i]);
      dims.push_back(size < 0 ? Dim() : Dim(size));
    }
    s.item.shape = Shape(std::move(dims));
  }
  return s;
}

ValueId add_sequence(Graph& graph, const Sequence& s, ValueId length) {
  auto inputs = s.values;
  if (length.valid()) inputs.push_back(length);
  const auto node = graph.add_node(Opaque{"", std::string(kSequence), "", written(s, length.valid())},
                                   std::move(inputs), {}, 1);
  return graph.node(node).outputs[0];
}

ValueId checked_length_of(const Graph& graph, ValueId v) {
  const auto& node = graph.node(graph.producer(v));
  const bool has = number_of(node.op.as<Opaque>()->attributes.at(kHasLength)) != 0;
  return has ? node.inputs.back() : ValueId{};
}

bool takes_sequences(std::string_view op_type) {
  constexpr std::array all{"ConcatFromSequence", "Identity",           "Loop",       "Optional",
                           "OptionalGetElement", "OptionalHasElement", "SequenceAt", "SequenceErase",
                           "SequenceInsert",     "SequenceLength",     "SequenceMap"};
  return std::ranges::find(all, op_type) != all.end();
}

void erase_sequences(Graph& graph) {
  for (auto n = static_cast<std::uint32_t>(graph.node_slots()); n-- > 0;) {
    const auto& node = graph.node({n});
    if (node.erased() || node.outputs.empty()) continue;
    if (is_sequence(graph, node.outputs[0]) && graph.readers(node.outputs[0]) == 0) graph.erase({n});
  }
}

TensorType common_item(const TensorType& a, const TensorType& b) {
  if (a.element == ElementType::undefined || b.element == ElementType::undefined) return {};
  if (a.element != b.element)
    throw NotSupported{
        fmt::format("a sequence with elements of types {} and {}", name_of(a.element), name_of(b.element))};
  if (!a.shape.ranked() || !b.shape.ranked() || a.shape.rank() != b.shape.rank()) return {a.element, {}};
  TensorType out = a;
  for (std::size_t i = 0; i < a.shape.rank(); ++i)
    if (!a.shape[i].same(b.shape[i])) out.shape[i] = Dim();
  return out;
}

TensorType item_type(const Graph& graph, const Sequence& s) {
  if (s.form == SequenceForm::rows || s.form == SequenceForm::parts) {
    auto type = graph.type(s.values[0]);
    if (!type.shape.ranked()) return type;
    std::vector<Dim> dims;
    for (std::size_t i = 0; i < type.shape.rank(); ++i) {
      const bool cut = static_cast<std::int64_t>(i) == s.axis;
      if (!cut || s.keeps_axis)
        dims.push_back(!cut ? type.shape[i] : s.form == SequenceForm::rows ? Dim(1) : Dim());
    }
    return {type.element, Shape(std::move(dims))};
  }
  if (s.form != SequenceForm::listed || s.values.empty()) return s.item;
  auto type = graph.type(s.values[0]);
  for (auto v : s.values) type = common_item(type, graph.type(v));
  return type;
}

Values held_values(const Graph& graph, ValueId v) {
  Values all{v};
  if (is_sequence(graph, v)) all = sequence_of(graph, v).values;
  std::erase_if(all, [&](ValueId held) { return graph.constant(held) != nullptr; });
  return all;
}

ValueId bring_in(Graph& body, const Graph& around, ValueId v, std::string_view name) {
  if (!is_sequence(around, v)) {
    if (const auto* data = around.constant(v)) return body.add_constant(*data);
    return body.add_input(std::string(name), around.type(v));
  }
  auto s = sequence_of(around, v);
  for (auto& held : s.values) {
    const auto* data = around.constant(held);
    held = data ? body.add_constant(*data) : body.add_input(std::string(name), around.type(held));
  }
  return add_sequence(body, s);
}

}  // namespace lamina::onnx
