#pragma once
/// Makes operators of structs. Only the files that register operators include this.
#include "graph/op.h"
#include "graph/permute.h"
#include "graph/work.h"

namespace lamina {

namespace detail {

template <class T>
Attribute to_attribute(const T& field) {
  if constexpr (std::is_enum_v<T> && !std::is_same_v<T, ElementType>) {
    return std::string(enum_names<T>[static_cast<std::size_t>(field)]);
  } else if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, ElementType>) {
    return field;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<std::int64_t>(field);
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<double>(field);
  } else {
    return field;
  }
}

struct Collect {
  std::vector<NamedAttribute> out;
  template <class T>
  void operator()(const char* name, T& field, Owner owner = Owner::openvino) {
    out.push_back({name, to_attribute(field), owner});
  }
};

struct Assign {
  const AnyOp& op;
  std::string_view name;
  const Attribute& value;
  bool found = false;

  template <class T>
  void operator()(const char* field_name, T& field, Owner = Owner::openvino) {
    if (name != field_name) return;
    found = true;
    if constexpr (std::is_enum_v<T> && !std::is_same_v<T, ElementType>) {
      const auto* text = std::get_if<std::string>(&value);
      std::string all;
      for (std::size_t i = 0; i < enum_names<T>.size(); ++i) {
        if (text && *text == enum_names<T>[i]) {
          field = static_cast<T>(i);
          return;
        }
        all += (i ? ", " : "") + std::string(enum_names<T>[i]);
      }
      wrong_attribute(op, name, value, "one of " + all);
    } else if constexpr (std::is_same_v<T, bool>) {
      if (const auto* v = std::get_if<bool>(&value))
        field = *v;
      else if (const auto* i = std::get_if<std::int64_t>(&value))
        field = *i != 0;
      else
        wrong_attribute(op, name, value, "true or false");
    } else if constexpr (std::is_integral_v<T>) {
      if (const auto* v = std::get_if<std::int64_t>(&value))
        field = static_cast<T>(*v);
      else
        wrong_attribute(op, name, value, "an integer");
    } else if constexpr (std::is_floating_point_v<T>) {
      if (const auto* v = std::get_if<double>(&value))
        field = static_cast<T>(*v);
      else if (const auto* i = std::get_if<std::int64_t>(&value))
        field = static_cast<T>(*i);
      else
        wrong_attribute(op, name, value, "a number");
    } else if constexpr (std::is_same_v<T, Floats>) {
      if (const auto* v = std::get_if<Floats>(&value))
        field = *v;
      else if (const auto* i = std::get_if<Ints>(&value))
        field.assign(i->begin(), i->end());
      else
        wrong_attribute(op, name, value, "a list of numbers");
    } else {
      if (const auto* v = std::get_if<T>(&value))
        field = *v;
      else
        wrong_attribute(op, name, value, std::is_same_v<T, Ints> ? "a list of integers" : "another kind");
    }
  }
};

}  // namespace detail

/// Makes an AnyOp of a struct of attributes.
template <class T>
class OpModel final : public AnyOp {
 public:
  explicit OpModel(T op) : op_(std::move(op)) {}

  const OpInfo& info() const override { return T::info; }
  const void* type() const override { return &detail::type_address<T>; }
  const void* fields() const override { return &op_; }
  std::vector<NamedAttribute> attributes() const override {
    detail::Collect c;
    T copy = op_;
    if constexpr (requires { copy.visit(c); }) copy.visit(c);
    return std::move(c.out);
  }
  std::vector<NamedAttribute> changed_attributes() const override {
    auto mine = attributes();
    const auto base = OpModel(T{}).attributes();
    std::vector<NamedAttribute> out;
    for (std::size_t i = 0; i < mine.size(); ++i)
      if (!equal_attribute(mine[i].value, base[i].value)) out.push_back(std::move(mine[i]));
    return out;
  }
  void set(std::string_view name, const Attribute& value) override {
    detail::Assign a{*this, name, value};
    if constexpr (requires { op_.visit(a); }) op_.visit(a);
    if (!a.found) unknown_attribute(*this, name);
  }
  std::unique_ptr<AnyOp> copy() const override { return std::make_unique<OpModel>(op_); }
  void infer(InferContext& c) const override { op_.infer(c); }
  void evaluate(EvalContext& c) const override { op_.evaluate(c); }
  Verdict permute(PermuteContext& c) const override {
    if constexpr (requires { op_.permute(c); })
      return op_.permute(c);
    else if constexpr (has(T::info.traits, Trait::elementwise))
      return permute_elementwise(c);
    else
      return Verdict::no("{} depends on the order of its axes", T::info.name);
  }
  std::optional<std::vector<Dim>> shape_value(ShapeValueContext& c) const override {
    if constexpr (requires { op_.shape_value(c); })
      return op_.shape_value(c);
    else
      return std::nullopt;
  }
  NodeWork work(const WorkContext& c) const override {
    if constexpr (requires { op_.work(c); })
      return op_.work(c);
    else
      return usual_work(c);
  }
  bool can_decompose(const Graph& g, const Node& n) const override {
    if constexpr (requires { op_.can_decompose(g, n); })
      return op_.can_decompose(g, n);
    else
      return requires(Graph & to) { op_.decompose(to, n); };
  }
  std::vector<NodeId> decompose(Graph& g, const Node& n) const override {
    if constexpr (requires { op_.decompose(g, n); })
      return op_.decompose(g, n);
    else
      fail(ErrorCode::internal, "{} stands for itself", T::info.name);
  }
  std::string display_name() const override {
    if constexpr (requires { op_.display_name(); })
      return op_.display_name();
    else
      return std::string(T::info.name);
  }

 private:
  T op_;
};

// Compiled here and nowhere else, so it must be emitted even where it could be inlined.
template <class T>
[[gnu::noinline, gnu::used]] std::shared_ptr<const AnyOp> make_op(T op) {
  return std::make_shared<OpModel<T>>(std::move(op));
}

template <class T>
void Registry::add() {
  add(make_op<T>(T{}));
}

}  // namespace lamina
