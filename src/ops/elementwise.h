#pragma once
/// Element-wise arithmetic, comparisons and logic. Two inputs broadcast as in numpy and have equal element
/// types.
#include "graph/shape_value.h"
#include "ops/eval.h"
#include "ops/scalar.h"

namespace lamina {

/// One function of elements, for each of the types that they are computed in (ops/scalar.h).
template <template <class> class Function>
struct Typed {
  Function<double> real;
  Function<std::int64_t> integer;
  Function<std::uint64_t> unsigned_integer;
  template <class T>
  Function<T> of() const {
    if constexpr (std::is_same_v<T, double>) return real;
    if constexpr (std::is_same_v<T, std::int64_t>) return integer;
    if constexpr (std::is_same_v<T, std::uint64_t>) return unsigned_integer;
  }
};
template <class T>
using OneElement = T (*)(T);
template <class T>
using TwoElements = T (*)(T, T);
using UnaryFunction = Typed<OneElement>;
using BinaryFunction = Typed<TwoElements>;

/// Output = type and shape of input 0.
void infer_unary(InferContext& c, Takes takes);
void evaluate_unary(EvalContext& c, UnaryFunction f);
/// As evaluate_unary for functions of real numbers with parameters.
void evaluate_unary(EvalContext& c, const std::function<double(double)>& f);
/// The quotient of integers as Divide has it.
template <class T>
TwoElements<T> integer_quotient(bool floors) {
  return floors ? scalar::floored_div<T> : scalar::truncated_div<T>;
}
void infer_binary(InferContext& c, Takes takes, bool compares);
void evaluate_binary(EvalContext& c, BinaryFunction f);
/// Throws unless the element type is one of those; undefined types pass.
void require_takes(const InferContext& c, std::size_t input, Takes takes);

/// y = F(x), one input.
template <class F>
struct Unary {
  static constexpr OpInfo info{F::name, 1, 1, 1, Trait::unary_elementwise | F::traits, F::doc, F::since};
  void infer(InferContext& c) const { infer_unary(c, F::takes); }
  void evaluate(EvalContext& c) const { evaluate_unary(c, UnaryFunction{F::real, F::integer, F::integer}); }
};

/// y = F(a, b); comparisons give boolean.
template <class F>
struct Binary {
  static constexpr OpInfo info{F::name, 2, 2, 1, Trait::binary_elementwise | F::traits, F::doc, F::since};
  void infer(InferContext& c) const { infer_binary(c, F::takes, F::compares); }
  void evaluate(EvalContext& c) const { evaluate_binary(c, BinaryFunction{F::real, F::integer, F::integer}); }
  ShapeValue shape_value(ShapeValueContext& c) const requires requires(const Dim& size) {
    of_sizes(F{}, size, size);
  }
  {
    return combine_sizes(c, [](const Dim& a, const Dim& b) { return of_sizes(F{}, a, b); });
  }
};

using Abs = Unary<scalar::Abs>;
using Acos = Unary<scalar::Acos>;
using Acosh = Unary<scalar::Acosh>;
using Asin = Unary<scalar::Asin>;
using Asinh = Unary<scalar::Asinh>;
using Atan = Unary<scalar::Atan>;
using Atanh = Unary<scalar::Atanh>;
using BitwiseNot = Unary<scalar::BitwiseNot>;
using Ceiling = Unary<scalar::Ceiling>;
using Cos = Unary<scalar::Cos>;
using Cosh = Unary<scalar::Cosh>;
using Erf = Unary<scalar::Erf>;
using Exp = Unary<scalar::Exp>;
using Floor = Unary<scalar::Floor>;
using Log = Unary<scalar::Log>;
using LogicalNot = Unary<scalar::LogicalNot>;
using Negative = Unary<scalar::Negative>;
using Sign = Unary<scalar::Sign>;
using Sin = Unary<scalar::Sin>;
using Sinh = Unary<scalar::Sinh>;
using Sqrt = Unary<scalar::Sqrt>;
using Tan = Unary<scalar::Tan>;

using Add = Binary<scalar::Add>;
using BitwiseAnd = Binary<scalar::BitwiseAnd>;
using BitwiseLeftShift = Binary<scalar::BitwiseLeftShift>;
using BitwiseOr = Binary<scalar::BitwiseOr>;
using BitwiseRightShift = Binary<scalar::BitwiseRightShift>;
using BitwiseXor = Binary<scalar::BitwiseXor>;
using Equal = Binary<scalar::Equal>;
using FloorMod = Binary<scalar::FloorMod>;
using Greater = Binary<scalar::Greater>;
using GreaterEqual = Binary<scalar::GreaterEqual>;
using Less = Binary<scalar::Less>;
using LessEqual = Binary<scalar::LessEqual>;
using LogicalAnd = Binary<scalar::LogicalAnd>;
using LogicalOr = Binary<scalar::LogicalOr>;
using LogicalXor = Binary<scalar::LogicalXor>;
using Maximum = Binary<scalar::Maximum>;
using Minimum = Binary<scalar::Minimum>;
using Mod = Binary<scalar::Mod>;
using Multiply = Binary<scalar::Multiply>;
using NotEqual = Binary<scalar::NotEqual>;
using Power = Binary<scalar::Power>;
using SquaredDifference = Binary<scalar::SquaredDifference>;
using Subtract = Binary<scalar::Subtract>;

/// a / b. Integers: floored when m_pythondiv, else truncated; 0 for a divisor of 0.
struct Divide {
  static constexpr OpInfo info{"Divide", 2, 2, 1, Trait::binary_elementwise | Trait::divides, "a / b", 1};
  bool m_pythondiv = true;
  template <class V>
  void visit(V& v) {
    v("m_pythondiv", m_pythondiv);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  ShapeValue shape_value(ShapeValueContext& c) const;
};

enum class RoundMode : std::uint8_t { half_to_even, half_away_from_zero };
template <>
inline constexpr std::array enum_names<RoundMode> = {std::string_view("half_to_even"),
                                                     std::string_view("half_away_from_zero")};

/// Round(x).
struct Round {
  static constexpr OpInfo info{"Round",           1, 1, 1, Trait::unary_elementwise | Trait::levels,
                               "Nearest integer", 5};
  RoundMode mode = RoundMode::half_to_even;
  template <class V>
  void visit(V& v) {
    v("mode", mode);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// IsNaN(x), boolean.
struct IsNaN {
  static constexpr OpInfo info{"IsNaN", 1, 1, 1, Trait::unary_elementwise, "True for NaN", 10};
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// IsFinite(x), boolean.
struct IsFinite {
  static constexpr OpInfo info{"IsFinite", 1, 1, 1, Trait::unary_elementwise, "False for NaN and infinities",
                               10};
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// IsInf(x), boolean.
struct IsInf {
  static constexpr OpInfo info{
      "IsInf", 1, 1, 1, Trait::unary_elementwise, "True for infinities of the signs that the attributes name",
      10};
  bool detect_negative = true;
  bool detect_positive = true;
  template <class V>
  void visit(V& v) {
    v("detect_negative", detect_negative);
    v("detect_positive", detect_positive);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// Select(condition boolean, then, else); all three broadcast.
struct Select {
  static constexpr OpInfo info{"Select",
                               3,
                               3,
                               1,
                               Trait::nary_elementwise | Trait::selects,
                               "The element of `then` where the condition is true, else that of `else`",
                               1};
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// Convert(x). Float to integer truncates towards zero and saturates, also to packed types; integers wrap. To
/// floats of 8 and 4 bits numbers are rounded to nearest and saturate (base/small_float.h).
struct Convert {
  static constexpr OpInfo info{"Convert",
                               1,
                               1,
                               1,
                               Trait::unary_elementwise | Trait::selects,
                               "The same numbers in another element type",
                               1,
                               OpFamily::quantization};
  ElementType destination_type = ElementType::f32;
  template <class V>
  void visit(V& v) {
    v("destination_type", destination_type);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  ShapeValue shape_value(ShapeValueContext& c) const { return c.same_elements(); }
};

/// ConvertLike(x, like): Convert to the element type of `like`.
struct ConvertLike {
  static constexpr OpInfo info{"ConvertLike",
                               2,
                               2,
                               1,
                               Trait::unary_elementwise | Trait::selects,
                               "Convert to the other input's element type",
                               1,
                               OpFamily::quantization};
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// BitCast(x): the same bits as another element type of as many bits. Bytes other than 0 are true.
struct BitCast {
  static constexpr OpInfo info{"BitCast", 1, 1, 1, Trait::none, "The same bits in another element type"};
  ElementType destination_type = ElementType::f32;
  template <class V>
  void visit(V& v) {
    v("destination_type", destination_type);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// Elementwise(x): x itself, the base of a body of element-wise operators that run as one (rule
/// fuse-elementwise). Shapes may grow inside the body by broadcasting.
struct Elementwise {
  static constexpr OpInfo info{
      "Elementwise",       1, 1, 1, Trait::epilogue, "A group of element-wise operators as one node", 0,
      OpFamily::arithmetic};
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

}  // namespace lamina
