#pragma once
/// Activation functions. Scalar formulas are in ops/scalar.h.
#include <algorithm>

#include "ops/elementwise.h"

namespace lamina {

using HSigmoid = Unary<scalar::HSigmoid>;
using HSwish = Unary<scalar::HSwish>;
using Mish = Unary<scalar::Mish>;
using Relu = Unary<scalar::Relu>;
using Sigmoid = Unary<scalar::Sigmoid>;
using SoftPlus = Unary<scalar::SoftPlus>;
using SoftSign = Unary<scalar::SoftSign>;
using Tanh = Unary<scalar::Tanh>;

/// Elu(x).
struct Elu {
  static constexpr OpInfo info{
      "Elu", 1, 1, 1, Trait::unary_elementwise | Trait::curve, "x, or alpha * (exp(x) - 1) below 0", 1};
  double alpha = 1;
  template <class V>
  void visit(V& v) {
    v("alpha", alpha);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// Selu(x, alpha, lambda): parameters of one element each.
struct Selu {
  static constexpr OpInfo info{"Selu",
                               3,
                               3,
                               1,
                               Trait::unary_elementwise | Trait::curve,
                               "lambda * (x, or alpha * (exp(x) - 1) below 0)",
                               1};
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// HardSigmoid(x, alpha, beta): parameters of one element each.
struct HardSigmoid {
  static constexpr OpInfo info{
      "HardSigmoid", 3, 3, 1, Trait::unary_elementwise, "min(max(alpha * x + beta, 0), 1)", 1};
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// Swish(x, beta?): beta of one element, 1 when absent.
struct Swish {
  static constexpr OpInfo info{
      "Swish", 1, 2, 1, Trait::unary_elementwise | Trait::curve, "x * sigmoid(beta * x)", 4};
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

enum class GeluMode : std::uint8_t { erf, tanh };
template <>
inline constexpr std::array enum_names<GeluMode> = {std::string_view("erf"), std::string_view("tanh")};

/// Gelu(x).
struct Gelu {
  static constexpr OpInfo info{
      "Gelu", 1, 1, 1, Trait::unary_elementwise | Trait::curve, "x * (normal distribution function of x)", 2};
  GeluMode approximation_mode = GeluMode::erf;
  template <class V>
  void visit(V& v) {
    v("approximation_mode", approximation_mode);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// Clamp(x). On integers the bounds are ceil(min) and floor(max), within the type.
struct Clamp {
  static constexpr OpInfo info{
      "Clamp", 1, 1, 1, Trait::unary_elementwise | Trait::selects, "min(max(x, min), max)", 1};
  double min = 0;
  double max = 0;
  template <class V>
  void visit(V& v) {
    v("min", min);
    v("max", max);
  }
  /// The bounds on elements of a type; T as with_number_type() says.
  template <class T>
  std::pair<T, T> bounds(ElementType type) const {
    if constexpr (std::is_floating_point_v<T>) {
      return {min, max};
    } else {
      const auto [least, most] = integer_range<T>(type);
      return {std::clamp(scalar::rounded<T>(std::ceil(min)), least, most),
              std::clamp(scalar::rounded<T>(std::floor(max)), least, most)};
    }
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// PowerStatic(x): the Power of old IRs, whose operands are attributes. Each step is rounded to x's type; a
/// scale of 1, a shift of 0 and a power of 1 are no steps.
struct PowerStatic {
  static constexpr OpInfo info{
      "PowerStatic", 1, 1, 1, Trait::unary_elementwise, "(scale * x + shift) to a constant power"};
  double power = 1;
  double scale = 1;
  double shift = 0;
  template <class V>
  void visit(V& v) {
    v("power", power);
    v("scale", scale);
    v("shift", shift);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// PRelu(x, slope). A slope of rank 1 whose length is x's size along axis 1 (or 1) lies along axis 1 (along
/// axis 0 when x has rank 1); any other slope broadcasts to x as in numpy.
struct PRelu {
  static constexpr OpInfo info{
      "PRelu", 2, 2, 1, Trait::nary_elementwise, "x, or slope * x below 0", 1, OpFamily::activation};
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  Verdict permute(PermuteContext& c) const;
};

/// PRelu's slope as a shape that broadcasts to x as in numpy: [C] becomes [C,1,1] for x of rank 4.
Shape prelu_slope_shape(const Shape& x, const Shape& slope);

}  // namespace lamina
