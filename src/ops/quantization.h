#pragma once
/// Quantisation: simulated (FakeQuantize) and to integers.
#include "ops/eval.h"

namespace lamina {

/// FakeQuantize(x, input_low, input_high, output_low, output_high); the four ranges broadcast to x.
/// The expression is in ops/fake_quantize.h.
struct FakeQuantize {
  static constexpr OpInfo info{"FakeQuantize",
                               5,
                               5,
                               1,
                               Trait::nary_elementwise | Trait::levels | Trait::divides,
                               "Rounds to evenly spaced levels between two bounds",
                               1,
                               OpFamily::quantization};
  std::int64_t levels = 256;
  template <class V>
  void visit(V& v) {
    v("levels", levels);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// What is wrong with the shapes of scale and zero point (null: there is none) of Quantize and Dequantize for
/// numbers of shape x, as far as the shapes are known; empty where they may fit. Throws where there is no
/// such axis.
std::string quantization_fault(const Shape& x, const Shape& scale, const Shape* zero_point, std::int64_t axis,
                               std::int64_t block_size);

/// Quantize(x, scale, zero_point?): saturate(round_half_even(x / scale) + zero_point), computed in f32.
/// Scale and zero point have one element, or one per index of `axis`; with block_size > 0 they have x's rank
/// and one element per block_size indices of `axis`. zero_point has the destination type.
struct Quantize {
  static constexpr OpInfo info{"Quantize",
                               2,
                               3,
                               1,
                               Trait::unary_elementwise | Trait::levels | Trait::divides,
                               "Floats to integers by scale and zero point",
                               0,
                               OpFamily::quantization};
  std::int64_t axis = 1;
  std::int64_t block_size = 0;
  ElementType destination_type = ElementType::u8;
  template <class V>
  void visit(V& v) {
    v("axis", axis);
    v("block_size", block_size);
    v("destination_type", destination_type);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  Verdict permute(PermuteContext& c) const;
};

/// Dequantize(x, scale, zero_point?): (x - zero_point) * scale in f32, given in the element type of scale.
/// Shapes as for Quantize; zero_point has the type of x.
struct Dequantize {
  static constexpr OpInfo info{"Dequantize",
                               2,
                               3,
                               1,
                               Trait::unary_elementwise,
                               "Integers to floats by scale and zero point",
                               0,
                               OpFamily::quantization};
  std::int64_t axis = 1;
  std::int64_t block_size = 0;
  template <class V>
  void visit(V& v) {
    v("axis", axis);
    v("block_size", block_size);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  Verdict permute(PermuteContext& c) const;
};

template <>
inline constexpr std::array enum_names<PowerRounding> = {std::string_view("nearest"), std::string_view("up"),
                                                         std::string_view("down")};

/// ConvertSmallFloat(x): Convert to a float of 8 or 4 bits where overflow does not saturate, or where f8e8m0
/// does not round to nearest; base/small_float.h says to what.
struct ConvertSmallFloat {
  static constexpr OpInfo info{"ConvertSmallFloat",
                               1,
                               1,
                               1,
                               Trait::levels,
                               "Floats of 8 bits by their own rule of overflow and rounding",
                               0,
                               OpFamily::quantization};
  ElementType destination_type = ElementType::f8e4m3;
  bool saturate = true;
  PowerRounding round_mode = PowerRounding::nearest;
  template <class V>
  void visit(V& v) {
    v("destination_type", destination_type);
    v("saturate", saturate);
    v("round_mode", round_mode);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// DynamicQuantize(x) -> y u8, scale f32, zero_point u8: the range of x, widened to contain 0, on 0..255.
struct DynamicQuantize {
  static constexpr OpInfo info{
      "DynamicQuantize",     1, 1, 3, Trait::levels, "Quantizes to u8 by the tensor's own range", 0,
      OpFamily::quantization};
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

}  // namespace lamina
