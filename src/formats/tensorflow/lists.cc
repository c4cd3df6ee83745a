#include "formats/tensorflow/lists.h"

#include <algorithm>
#include <limits>

#include "formats/tensorflow/call.h"
#include "formats/tensorflow/importer.h"
#include "ops/control.h"
#include "ops/elementwise.h"
#include "ops/eval.h"
#include "ops/gathering.h"
#include "ops/generation.h"
#include "ops/movement.h"
#include "ops/shaping.h"

namespace lamina::tensorflow {
namespace {

constexpr std::string_view kList = "list of tensors", kJoined = "joined list of tensors";

/// The inputs of an Opaque node of that type; null for other values.
const Values* inputs_of(const Graph& graph, ValueId v, std::string_view type) {
  const auto producer = graph.producer(v);
  if (!producer.valid()) return nullptr;
  const auto* op = graph.node(producer).op.as<Opaque>();
  return op && op->type == type ? &graph.node(producer).inputs : nullptr;
}

/// The length of a list that nothing was written to; invalid when it is not known here.
ValueId unwritten_length(const Graph& graph, ValueId list) {
  const auto* inputs = inputs_of(graph, list, kList);
  return inputs ? inputs->at(0) : ValueId{};
}

bool is_written(const Call& c, ValueId list) { return c.element(list) != ElementType::undefined; }

/// An input that is a list. Throws where it cannot be one: the elements lie along the first axis.
ValueId list_in(const Call& c, std::size_t input) {
  const auto list = c.in(input);
  if (c.rank(list) == std::size_t{0}) c.fail("input {} is a scalar, wanted a list of tensors", input);
  return list;
}

/// Throws for lists that nothing was written to.
ValueId written(Call& c, ValueId list) {
  if (!is_written(c, list)) c.unsupported("a list of tensors whose elements are not known");
  return list;
}

/// What an element's shape says, given as a constant: -1 where it is unknown.
Shape element_shape(const Call& c, ValueId v) {
  const auto sizes = c.known_ints(v);
  if (!sizes || c.rank(v) == std::size_t{0}) return {};
  std::vector<Dim> dims;
  for (auto size : *sizes) dims.push_back(size < 0 ? Dim() : Dim(size));
  return dims;
}

ValueId make_list(Call& c, ValueId length, ElementType element, const Shape& shape) {
  length = c.to_vector(c.convert(length, ElementType::i64));
  if (shape.known()) {
    const auto sizes = c.concat({length, c.ints_constant(shape.sizes())}, 0);
    return c.filled(c.number(0, element), sizes);
  }
  return c.add_all(Opaque{"", std::string(kList), "", {}}, {length}, 1)[0];
}

/// An element as a list of one.
ValueId alone(Call& c, ValueId item) { return c.unsqueeze(item, {0}); }

/// The list with elements of the item's sizes, which may not have been known when it was made.
ValueId fitted(Call& c, ValueId list, ValueId item) {
  const auto rank = c.known_rank(item);
  if (!is_written(c, list)) {
    std::vector<Dim> dims{Dim()};
    for (std::size_t i = 0; i < rank; ++i) dims.push_back(c.shape(item)[i]);
    list = unwritten_list(c.graph(), list, {c.known_element(item), dims});
  }
  if (c.rank(list) == rank + 1) {
    bool same = true;
    for (std::size_t i = 0; i < rank; ++i) {
      const auto &mine = c.shape(list)[i + 1], &given = c.shape(item)[i];
      same = same && mine.known() && given.known() && mine == given;
    }
    if (same) return list;
  }
  return c.filled(list, c.concat({c.part(c.shape_of(list), 0, 1), c.shape_of(item)}, 0));
}

/// Zeros between the end of a list and a place behind it, for items of that shape.
Values gap_before(Call& c, ValueId list, ValueId index, ValueId item) {
  const auto known = c.known_ints(index);
  const auto& shape = c.shape(list);
  if (known && shape.ranked() && shape[0].known() && known->front() <= shape[0].size()) return {};
  const auto length = c.part(c.shape_of(list), 0, 1);
  const auto missing = c.add(Maximum{}, {c.add(Subtract{}, {index, length}), c.ints_constant({0})});
  return {c.filled(c.number(0, c.known_element(item)), c.concat({missing, c.shape_of(item)}, 0))};
}

/// The list with the item at a place, which may be behind its end when it grows.
ValueId with_item(Call& c, ValueId list, ValueId index, ValueId item, bool grows) {
  if (const auto known = c.known_ints(index); known && known->size() != 1)
    c.fail("an index has {} elements, wanted 1", known->size());
  index = c.to_vector(c.convert(index, ElementType::i64));
  list = fitted(c, list, item);
  if (!grows) return c.add(ScatterUpdate{}, {list, index, alone(c, item), c.int_constant(0)});
  const auto one = c.ints_constant({1}), zero = c.ints_constant({0});
  const auto end = c.ints_constant({std::numeric_limits<std::int64_t>::max()});
  const auto head = c.add(Slice{}, {list, zero, index, one, zero});
  const auto tail = c.add(Slice{}, {list, c.add(Add{}, {index, one}), end, one, zero});
  Values parts{head};
  for (const auto gap : gap_before(c, list, index, item)) parts.push_back(gap);
  parts.insert(parts.end(), {alone(c, item), tail});
  return c.concat(std::move(parts), 0);
}

ValueId length_of(Call& c, ValueId list) {
  if (const auto* known = inputs_of(c.graph(), list, kJoined))
    return c.convert(c.to_scalar(c.shape_of(known->at(1))), ElementType::i32);
  auto length = is_written(c, list) ? c.part(c.shape_of(list), 0, 1) : unwritten_length(c.graph(), list);
  if (!length.valid()) c.unsupported("the length of a list whose elements are not known");
  return c.convert(c.to_scalar(length), ElementType::i32);
}

/// 0, 1, 2 and so on.
bool counts_up(const Call& c, ValueId indices) {
  if (const auto known = c.known_ints(indices)) {
    for (std::size_t i = 0; i < known->size(); ++i)
      if ((*known)[i] != static_cast<std::int64_t>(i)) return false;
    return true;
  }
  const auto producer = c.graph().producer(indices);
  if (!producer.valid() || !c.graph().node(producer).op.is<Range>()) return false;
  const auto& inputs = c.graph().node(producer).inputs;
  return c.known_number(inputs.at(0)) == 0.0 && c.known_number(inputs.at(2)) == 1.0;
}

ValueId with_items(Call& c, ValueId list, ValueId indices, ValueId items) {
  if (!is_written(c, list) && counts_up(c, indices)) return items;
  const auto& shape = c.shape(items);
  if (counts_up(c, indices) && shape.ranked() && shape.rank() > 0 && c.shape(list).ranked() &&
      shape[0].same(c.shape(list)[0]))
    return items;
  const auto like = c.pick(items, 0, 0);
  return c.add(ScatterUpdate{}, {fitted(c, list, like), indices, items, c.int_constant(0)});
}

ValueId items_at(Call& c, ValueId list, ValueId indices) {
  const auto known = c.known_ints(indices);
  const auto& shape = c.shape(written(c, list));
  if (known && counts_up(c, indices) && shape.ranked() && shape.rank() > 0 && shape[0].is(std::ssize(*known)))
    return list;
  return c.add(Gather{}, {list, indices, c.int_constant(0)});
}

/// Elements one behind the other, and how long each is.
Values joined(Call& c, ValueId list) {
  if (const auto* known = inputs_of(c.graph(), list, kJoined)) return *known;
  const auto sizes = c.shape_of(written(c, list));
  const auto rank = static_cast<std::int64_t>(c.known_rank(list));
  if (rank < 2) c.fail("joins elements that are scalars");
  Values parts{c.ints_constant({-1})};
  if (rank > 2) parts.push_back(c.part(sizes, 2, rank));
  return {c.add(Reshape{}, {list, c.concat(std::move(parts), 0)}),
          c.filled(c.to_scalar(c.part(sizes, 1, 2)), c.part(sizes, 0, 1))};
}

ValueId cut(Call& c, ValueId value, ValueId lengths) {
  const auto known = c.wanted_ints(lengths, "lengths of a list's elements");
  const auto rank = static_cast<std::int64_t>(c.known_rank(value));
  if (known.empty() || std::any_of(known.begin(), known.end(), [&](auto l) { return l != known[0]; }))
    c.unsupported("a list of tensors of different sizes");
  Values parts{c.ints_constant({std::ssize(known), known[0]})};
  if (rank > 1) parts.push_back(c.part(c.shape_of(value), 1, rank));
  return c.add(Reshape{}, {value, c.concat(std::move(parts), 0)});
}

/// A list's handle says whether it grows.
bool grows(Call& c) {
  if (c.node().inputs.empty()) c.fail("has 0 inputs, wanted a handle");
  const auto& node = c.importer().origin(c.node().inputs[0]);
  return node.op.starts_with("TensorArray") && Call(c.importer(), node, {}).flag("dynamic_size");
}

// Handle, ..., flow: the flow is the list, the handle stands for nothing.

Values convert_array(Call& c) {
  const auto type = c.type_attribute("dtype", ElementType::undefined);
  const auto shape =
      type == ElementType::undefined ? Shape() : c.shape_attribute("element_shape").value_or(Shape());
  return {c.number(0, ElementType::i32), make_list(c, c.in(0), type, shape)};
}

Values convert_array_write(Call& c) { return {with_item(c, list_in(c, 3), c.in(1), c.in(2), grows(c))}; }
Values convert_array_read(Call& c) {
  return {c.add(Gather{}, {written(c, list_in(c, 2)), c.in(1), c.int_constant(0)})};
}
Values convert_array_scatter(Call& c) { return {with_items(c, list_in(c, 3), c.in(1), c.in(2))}; }
Values convert_array_gather(Call& c) { return {items_at(c, list_in(c, 2), c.in(1))}; }
Values convert_array_size(Call& c) { return {length_of(c, list_in(c, 1))}; }
Values convert_array_concat(Call& c) { return joined(c, list_in(c, 1)); }
Values convert_array_split(Call& c) { return {cut(c, c.in(1), c.in(2))}; }

// The list comes first.

Values convert_reserve(Call& c) {
  const auto type = c.type_attribute("element_dtype", ElementType::f32);
  return {make_list(c, c.in(1), type, element_shape(c, c.in(0)))};
}

Values convert_empty(Call& c) {
  const auto type = c.type_attribute("element_dtype", ElementType::f32);
  return {make_list(c, c.int_constant(0), type, element_shape(c, c.in(0)))};
}

Values convert_from_tensor(Call& c) { return {list_in(c, 0)}; }
Values convert_stack(Call& c) { return {written(c, list_in(c, 0))}; }
Values convert_set_item(Call& c) {
  return {with_item(c, list_in(c, 0), c.in(1), c.in(2), c.flag("resize_if_index_out_of_bounds"))};
}
Values convert_get_item(Call& c) {
  return {c.add(Gather{}, {written(c, list_in(c, 0)), c.in(1), c.int_constant(0)})};
}
Values convert_length(Call& c) { return {length_of(c, list_in(c, 0))}; }
Values convert_list_gather(Call& c) { return {items_at(c, list_in(c, 0), c.in(1))}; }
Values convert_list_concat(Call& c) { return joined(c, list_in(c, 0)); }
Values convert_list_split(Call& c) { return {cut(c, c.in(0), c.in(2))}; }
Values convert_scatter_into(Call& c) { return {with_items(c, list_in(c, 0), c.in(2), c.in(1))}; }

Values convert_push_back(Call& c) {
  const auto list = fitted(c, list_in(c, 0), c.in(1));
  return {c.concat({list, alone(c, c.in(1))}, 0)};
}

Values convert_pop_back(Call& c) {
  const auto list = written(c, list_in(c, 0));
  const auto one = c.ints_constant({1}), zero = c.ints_constant({0}), last = c.ints_constant({-1});
  const auto end = c.ints_constant({std::numeric_limits<std::int64_t>::max()});
  return {c.add(Slice{}, {list, zero, last, one, zero}),
          c.squeeze(c.add(Slice{}, {list, last, end, one, zero}), {0})};
}

/// The value without what only changes its type or shape.
ValueId source_of(const Graph& graph, ValueId v) {
  for (std::size_t steps = 0; steps < graph.node_slots(); ++steps) {
    const auto producer = graph.producer(v);
    if (!producer.valid()) break;
    const auto& op = graph.node(producer).op;
    if (!op.is<Convert>() && !op.is<Reshape>() && !op.is<Squeeze>() && !op.is<Unsqueeze>() &&
        !op.is<Identity>())
      break;
    v = graph.node(producer).inputs[0];
  }
  return v;
}

}  // namespace

bool is_untyped_list(const Graph& graph, ValueId v) {
  return inputs_of(graph, v, kList) != nullptr || inputs_of(graph, v, kJoined) != nullptr;
}

ValueId unwritten_list(Graph& graph, ValueId list, const TensorType& written) {
  auto length = unwritten_length(graph, list);
  if (!length.valid()) length = graph.add_constant(Tensor::of<std::int64_t>({1}, Ints{1}));
  Ints sizes;
  for (std::size_t i = 1; written.shape.ranked() && i < written.shape.rank(); ++i)
    sizes.push_back(written.shape[i].known() ? written.shape[i].size() : 1);
  const auto zero = graph.add_constant(from_doubles(written.element, {}, {0}));
  auto shape = length;
  if (!sizes.empty())
    shape = graph.add(Concat{0},
                      {length, graph.add_constant(Tensor::of<std::int64_t>({std::ssize(sizes)}, sizes))});
  return graph.add(Broadcast{}, {zero, shape});
}

ValueId joined_list(Graph& graph, ValueId joined, ValueId lengths) {
  const auto node = graph.add_node(Opaque{"", std::string(kJoined), "", {}}, {joined, lengths}, {}, 1);
  return graph.node(node).outputs[0];
}

ValueId list_length(Graph& graph, ValueId list) {
  if (const auto length = unwritten_length(graph, list); length.valid()) return length;
  if (const auto producer = graph.producer(list);
      producer.valid() && graph.node(producer).op.is<Broadcast>()) {
    const auto shape = graph.producer(graph.node(producer).inputs[1]);  // as make_list makes it
    if (shape.valid() && graph.node(shape).op.is<Concat>()) return graph.node(shape).inputs[0];
  }
  return first_size(graph, list);
}

ValueId first_size(Graph& graph, ValueId v) {
  const auto at = [&](std::int64_t i) { return graph.add_constant(Tensor::of<std::int64_t>({1}, Ints{i})); };
  return graph.add(Slice{}, {graph.add(ShapeOf{}, {v}), at(0), at(1), at(1), at(0)});
}

ValueId filled_list(Graph& graph, ValueId items, ValueId length) {
  const auto shape = graph.type(items).shape;
  if (!shape.ranked()) throw NotSupported{"a list of tensors whose rank is not known"};
  const auto vector = [&](const Ints& v) {
    return graph.add_constant(Tensor::of<std::int64_t>({std::ssize(v)}, v));
  };
  const auto written = first_size(graph, items);
  const auto missing = graph.add(Maximum{}, {graph.add(Subtract{}, {length, written}), vector({0})});
  const auto none = Ints(shape.rank(), 0);
  auto behind = missing;
  if (shape.rank() > 1) behind = graph.add(Concat{0}, {missing, vector(Ints(shape.rank() - 1, 0))});
  return graph.add(Pad{}, {items, vector(none), behind});
}

bool same_number(const Graph& graph, ValueId a, ValueId b) {
  return source_of(graph, a) == source_of(graph, b);
}

void erase_unread_lists(Graph& graph) {
  for (auto i = static_cast<std::uint32_t>(graph.node_slots()); i-- > 0;) {
    const auto& node = graph.node({i});
    if (node.erased() || !node.op.is<Opaque>()) continue;
    const auto list = node.outputs[0];
    if (is_untyped_list(graph, list) && graph.readers(list) == 0) graph.erase({i});
  }
}

void register_lists(ConverterTable& t) {
  t.add("EmptyTensorList", convert_empty);
  for (const std::string version : {"", "V2", "V3"}) {
    t.add("TensorArray" + version, convert_array);
    t.add("TensorArrayConcat" + version, convert_array_concat);
    t.add("TensorArrayGather" + version, convert_array_gather);
    t.add("TensorArrayRead" + version, convert_array_read);
    t.add("TensorArrayScatter" + version, convert_array_scatter);
    t.add("TensorArraySize" + version, convert_array_size);
    t.add("TensorArraySplit" + version, convert_array_split);
    t.add("TensorArrayWrite" + version, convert_array_write);
  }
  t.add("TensorListConcat", convert_list_concat);
  t.add("TensorListConcatV2", convert_list_concat);
  t.add("TensorListFromTensor", convert_from_tensor);
  t.add("TensorListGather", convert_list_gather);
  t.add("TensorListGetItem", convert_get_item);
  t.add("TensorListLength", convert_length);
  t.add("TensorListPopBack", convert_pop_back);
  t.add("TensorListPushBack", convert_push_back);
  t.add("TensorListReserve", convert_reserve);
  t.add("TensorListScatterIntoExistingList", convert_scatter_into);
  t.add("TensorListSetItem", convert_set_item);
  t.add("TensorListSplit", convert_list_split);
  t.add("TensorListStack", convert_stack);
}

}  // namespace lamina::tensorflow
