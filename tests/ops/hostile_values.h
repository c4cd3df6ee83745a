#pragma once
/// Changes of a graph that a hostile file might make: attributes and small integer constants with values that
/// mean nothing, too much, or the same in another way.
#include <algorithm>
#include <cmath>

#include "graph/graph.h"
#include "ops/eval.h"

namespace lamina::testing {

inline const Ints& hostile_integers() {
  static const Ints all{-1, 0, 1, 2, 3, 7, -2, -3, -7, 1 << 20, 1LL << 31, 1LL << 62, INT64_MAX, INT64_MIN};
  return all;
}

inline const Floats& hostile_numbers() {
  static const Floats all{0, -1, 0.5, 1e30, -1e300, 1e-300, NAN, INFINITY, -INFINITY};
  return all;
}

/// Lists that differ from this one in one element or in their length.
template <class T>
std::vector<std::vector<T>> hostile_lists(const std::vector<T>& list, const std::vector<T>& values) {
  std::vector<std::vector<T>> out{{}};
  for (std::size_t i = 0; i < list.size(); ++i)
    for (const auto& v : values) {
      out.push_back(list);
      out.back()[i] = v;
    }
  for (const auto& v : values) {
    out.push_back(list);
    out.back().push_back(v);
    out.push_back({v});
  }
  if (!list.empty()) out.emplace_back(list.begin(), list.end() - 1);
  return out;
}

inline std::vector<Attribute> hostile_attributes(const Attribute& old) {
  std::vector<Attribute> out;
  const auto add = [&](const auto& values) { out.insert(out.end(), values.begin(), values.end()); };
  if (const auto* flag = std::get_if<bool>(&old)) out.emplace_back(!*flag);
  if (std::holds_alternative<std::int64_t>(old)) add(hostile_integers());
  if (std::holds_alternative<double>(old)) add(hostile_numbers());
  if (const auto* list = std::get_if<Ints>(&old)) add(hostile_lists(*list, hostile_integers()));
  if (const auto* list = std::get_if<Floats>(&old)) add(hostile_lists(*list, hostile_numbers()));
  if (const auto* list = std::get_if<Strings>(&old))
    add(hostile_lists<std::string>(*list, {"relu", "", "affine"}));
  if (std::holds_alternative<std::string>(old))
    for (const char* word : {"",
                             "same_upper",
                             "same_lower",
                             "valid",
                             "explicit",
                             "ceil",
                             "ceil_torch",
                             "edge",
                             "reflect",
                             "symmetric",
                             "wrap",
                             "numpy",
                             "bidirectional",
                             "nearest",
                             "linear",
                             "cubic",
                             "bilinear_pillow",
                             "scales",
                             "tf_crop_and_resize",
                             "align_corners",
                             "sum",
                             "mean",
                             "prod",
                             "none",
                             "value",
                             "reverse",
                             "bidirectional",
                             "normalize",
                             "blocks_first",
                             "max",
                             "min",
                             "bilinear",
                             "avg",
                             "center",
                             "i->",
                             "ij",
                             "...,->",
                             "ijk,jk->ii",
                             "tensorflow"})
      out.emplace_back(std::string(word));
  if (std::holds_alternative<ElementType>(old))
    for (const auto type :
         {ElementType::undefined, ElementType::f32, ElementType::f16, ElementType::i64, ElementType::i32,
          ElementType::u8, ElementType::boolean, ElementType::u1, ElementType::i4, ElementType::u64})
      out.emplace_back(type);
  return out;
}

/// Constants like `old`, a list of integers or a single one, with other values and lengths.
inline std::vector<Tensor> hostile_constants(const Tensor& old) {
  std::vector<Tensor> out;
  const auto type = old.element_type();
  if (!is_integer(type) || bits_of(type) < 8 || old.rank() > 1 || old.size() > 8) return out;
  for (const auto& list : hostile_lists(to_ints(old), hostile_integers()))
    out.push_back(from_ints(type, {std::ssize(list)}, list));
  for (const auto v : hostile_integers()) out.push_back(from_ints(type, {}, {v}));
  out.push_back(from_ints(type, {1, 1}, {1}));
  return out;
}

/// One change: of an attribute of a node, or of a constant.
struct Change {
  NodeId node;
  NamedAttribute attribute;
  ValueId value;
  Tensor constant;
};

/// Has numbers that f32 does not hold, so that results of kernels and of the interpreter differ.
inline bool beyond_f32(const Change& c) {
  const auto beyond = [](double v) { return std::isfinite(v) && std::fabs(v) > 1e6; };
  if (const auto* v = std::get_if<double>(&c.attribute.value)) return beyond(*v);
  const auto* list = std::get_if<Floats>(&c.attribute.value);
  return list && std::any_of(list->begin(), list->end(), beyond);
}

inline std::string text_of(const Graph& graph, const Change& c) {
  if (c.node.valid())
    return fmt::format("{} {}={}", graph.node(c.node).op.name(), c.attribute.name,
                       to_string(c.attribute.value));
  return fmt::format("{} = {}{}", graph.value(c.value).name, to_string(c.constant.shape()),
                     to_string(to_ints(c.constant)));
}

inline std::vector<Change> hostile_changes(const Graph& graph) {
  std::vector<Change> out;
  for (auto id : graph.order()) {
    const Node& n = graph.node(id);
    for (const auto& a : n.op->attributes())
      for (auto& value : hostile_attributes(a.value)) out.push_back({id, {a.name, std::move(value)}, {}, {}});
    for (auto v : n.inputs)
      if (const auto* t = v.valid() ? graph.constant(v) : nullptr)
        for (auto& value : hostile_constants(*t)) out.push_back({{}, {}, v, std::move(value)});
  }
  return out;
}

/// What is known when the graph is read: all; not the sizes of inputs; not the changed constant, which is
/// another input, the last one.
enum class Knowing { all, no_sizes, not_the_constant };

/// The graph built anew, node by node, with the change: throws where a reader would.
inline Graph changed(const Graph& from, const Change& change, Knowing knowing = Knowing::all) {
  Graph to;
  std::vector<ValueId> ids(from.value_slots());
  for (auto v : from.inputs()) {
    auto type = from.type(v);
    if (knowing == Knowing::no_sizes) type.shape = Shape::of_rank(type.shape.rank());
    ids[v.index] = to.add_input(from.value(v).name, type);
  }
  for (std::uint32_t i = 0; i < from.value_slots(); ++i) {
    const auto* old = from.constant({i});
    if (!old) continue;
    const auto& name = from.value({i}).name;
    const auto& t = ValueId{i} == change.value ? change.constant : *old;
    const bool fed = ValueId{i} == change.value && knowing == Knowing::not_the_constant;
    ids[i] = fed ? to.add_input(name, {t.element_type(), Shape::of(t.shape())}) : to.add_constant(t, name);
  }
  for (auto id : from.order()) {
    const Node& n = from.node(id);
    std::shared_ptr<AnyOp> op = n.op->copy();
    if (id == change.node) op->set(change.attribute.name, change.attribute.value);
    std::vector<ValueId> inputs;
    for (auto v : n.inputs) inputs.push_back(v.valid() ? ids[v.index] : ValueId());
    std::vector<std::string> names;
    for (auto v : n.outputs) names.push_back(from.value(v).name);
    const auto made = to.add_node(Op(std::shared_ptr<const AnyOp>(std::move(op))), inputs, n.name,
                                  static_cast<int>(names.size()), n.bodies, names);
    for (std::size_t o = 0; o < names.size(); ++o) ids[n.outputs[o].index] = to.node(made).outputs[o];
  }
  for (const auto& r : from.results()) to.add_result(r.name, ids[r.value.index]);
  return to;
}

/// Small enough to be run in a test.
inline bool is_small(const Graph& g) {
  for (auto id : g.order())
    for (auto v : g.node(id).outputs) {
      const auto& s = g.type(v).shape;
      if (s.ranked() && s.rank() > 32) return false;
      if (s.known() && s.count().size() > 100000) return false;
    }
  return true;
}

}  // namespace lamina::testing
