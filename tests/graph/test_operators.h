#pragma once
#include "graph/op_model.h"
/// Small operators for the tests of the graph module, which knows none itself.
#include "graph/graph.h"
#include "graph/infer.h"

namespace lamina {

enum class Flavour : std::uint8_t { sweet, sour_sweet };
template <>
inline constexpr std::array enum_names<Flavour> = {std::string_view("sweet"), std::string_view("sour-sweet")};

namespace test {

struct Relu {
  static constexpr OpInfo info{"Relu", 1, 1, 1, Trait::unary_elementwise, ""};
  void infer(InferContext& c) const { c.set(0, c.type(0)); }
  void evaluate(EvalContext&) const {}
};

struct Add {
  static constexpr OpInfo info{"Add", 2, 2, 1, Trait::binary_elementwise, ""};
  void infer(InferContext& c) const {
    const auto shape = broadcast(c.shape(0), c.shape(1));
    c.require(shape.has_value(), "shapes {} and {} do not fit", to_string(c.shape(0)), to_string(c.shape(1)));
    c.set(0, c.element(0), *shape);
  }
  void evaluate(EvalContext&) const {}
};

/// Keeps the type of its input; may own an epilogue. Up to three inputs.
struct Compute {
  static constexpr OpInfo info{"Compute", 1, 3, 1, Trait::epilogue, ""};
  Ints strides;
  std::int64_t groups = 1;
  template <class V>
  void visit(V& v) {
    v("strides", strides);
    v("groups", groups);
  }
  void infer(InferContext& c) const { c.set(0, c.type(0)); }
  void evaluate(EvalContext&) const {}
};

/// Any number of outputs along axis 0; one for unknown sizes.
struct Split {
  static constexpr OpInfo info{"Split", 1, 1, kMany, Trait::none, ""};
  std::int64_t num_splits = 1;
  template <class V>
  void visit(V& v) {
    v("num_splits", num_splits);
  }
  void infer(InferContext& c) const {
    c.require(num_splits == static_cast<std::int64_t>(c.outputs()), "{} outputs, wanted {}", c.outputs(),
              num_splits);
    for (std::size_t i = 0; i < c.outputs(); ++i) c.set(i, c.element(0), Shape::of_rank(1));
  }
  void evaluate(EvalContext&) const {}
};

/// Sets two outputs, whether there are two or not.
struct Pair {
  static constexpr OpInfo info{"Pair", 1, 1, 2, Trait::none, ""};
  void infer(InferContext& c) const {
    c.set(0, c.type(0));
    c.set(1, c.type(0));
  }
  void evaluate(EvalContext&) const {}
};

/// An attribute of every kind.
struct Everything {
  static constexpr OpInfo info{"Everything", 0, kMany, 1, Trait::none, ""};
  bool yes = false;
  std::int64_t whole = 0;
  double real = 0;
  std::string text;
  Flavour flavour = Flavour::sweet;
  Ints wholes;
  Floats reals;
  Strings texts;
  ElementType element = ElementType::f32;
  Shape shape;
  Tensor tensor;
  std::int64_t dashed = 0;
  template <class V>
  void visit(V& v) {
    v("yes", yes);
    v("whole", whole);
    v("real", real);
    v("text", text);
    v("flavour", flavour);
    v("wholes", wholes);
    v("reals", reals);
    v("texts", texts);
    v("element", element);
    v("shape", shape);
    v("tensor", tensor);
    v("dashed-name", dashed);
  }
  void infer(InferContext& c) const { c.set(0, element, shape); }
  void evaluate(EvalContext&) const {}
};

/// Runs one of two bodies.
struct Branch {
  static constexpr OpInfo info{"Branch", 1, kMany, kMany, Trait::control_flow, ""};
  void infer(InferContext& c) const {
    c.require(c.bodies().size() == 2, "{} bodies, wanted 2", c.bodies().size());
    for (std::size_t i = 0; i < c.outputs(); ++i) {
      const auto& body = c.bodies()[0];
      c.require(i < body.results().size(), "the body has {} results", body.results().size());
      c.set(i, body.type(body.results()[i].value));
    }
  }
  void evaluate(EvalContext&) const {}
};

/// Does not say what comes out.
struct Mystery {
  static constexpr OpInfo info{"Mystery", 0, kMany, kMany, Trait::impure, ""};
  void infer(InferContext&) const {}
  void evaluate(EvalContext&) const {}
};

inline const Registry& registry() {
  static const Registry all = [] {
    Registry r;
    r.add<Relu>();
    r.add<Add>();
    r.add<Compute>();
    r.add<Split>();
    r.add<Pair>();
    r.add<Everything>();
    r.add<Branch>();
    r.add<Mystery>();
    return r;
  }();
  return all;
}

}  // namespace test
}  // namespace lamina
