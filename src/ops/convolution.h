#pragma once
/// Convolutions. Weights of Convolution are [O, I/groups, spatial...]; all layouts are N, C, spatial...
#include <span>

#include "ops/eval.h"

namespace lamina {

enum class AutoPad : std::uint8_t { explicit_, same_upper, same_lower, valid };
template <>
inline constexpr std::array enum_names<AutoPad> = {std::string_view("explicit"),
                                                   std::string_view("same_upper"),
                                                   std::string_view("same_lower"), std::string_view("valid")};

/// Window of a convolution or pooling; an empty list means all ones (zeros for pads).
struct Window {
  Ints strides, dilations, pads_begin, pads_end;
  AutoPad auto_pad = AutoPad::explicit_;
  template <class V>
  void visit(V& v) {
    v("strides", strides);
    v("dilations", dilations);
    v("pads_begin", pads_begin);
    v("pads_end", pads_end);
    v("auto_pad", auto_pad);
  }
};

/// y[n,o,p] = bias[o] + sum over i, k of (x[n,i,p*s - pad + k*d] - x_zero_point) * (w[o,i,k] - w_zero_point).
/// Integer operands accumulate exactly and give i32. Zero points: scalars, w_zero_point also [O].
/// `sums`: what results of bf16 and f16 operands are; f32 keeps the sums, undefined rounds them to theirs.
struct Convolution : Window {
  static constexpr OpInfo info{"Convolution",
                               2,
                               5,
                               1,
                               Trait::epilogue | Trait::host | Trait::weights | Trait::products,
                               "Convolution, any number of groups, 1D to 3D",
                               1,
                               OpFamily::convolution};
  std::int64_t groups = 1;
  ElementType sums = ElementType::undefined;
  template <class V>
  void visit(V& v) {
    Window::visit(v);
    v("groups", groups, Owner::lamina);
    v("sums", sums, Owner::lamina);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  NodeWork work(const WorkContext& c) const { return {.multiply_adds = c.out() * c.in(1) / c.axis(1, 0)}; }
};

/// Transposed convolution: the gradient of Convolution with respect to its input. Weights [I, O/groups,
/// spatial...]. Input 3 gives the output's spatial sizes, inputs 4 and 5 are the zero points of input and
/// weights (a scalar or [O]). Integers of 8 and 16 bits accumulate exactly and give i32. `sums` as there.
struct ConvolutionBackpropData : Window {
  static constexpr OpInfo info{"ConvolutionBackpropData",
                               2,
                               6,
                               1,
                               Trait::epilogue | Trait::host | Trait::weights | Trait::products,
                               "Transposed convolution",
                               1,
                               OpFamily::convolution};
  Ints output_padding;
  std::int64_t groups = 1;
  ElementType sums = ElementType::undefined;
  template <class V>
  void visit(V& v) {
    Window::visit(v);
    v("output_padding", output_padding);
    v("groups", groups, Owner::lamina);
    v("sums", sums, Owner::lamina);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  NodeWork work(const WorkContext& c) const { return {.multiply_adds = c.in(0) * c.in(1) / c.axis(1, 0)}; }
};

/// The input of a convolution, transposed convolution or MatMul that is the zero point of its input (operand
/// 0) or weights (1).
inline std::size_t zero_point_input(const Op& op, std::size_t operand) {
  return operand + (op.is<ConvolutionBackpropData>() ? 4 : 3);
}

enum class BinaryMode : std::uint8_t { xnor_popcount };
template <>
inline constexpr std::array enum_names<BinaryMode> = {std::string_view("xnor-popcount")};

/// Input and weights are read as -1 (0 or less) and +1 (more than 0); weights are u1 [O, I/groups,
/// spatial...], low bit first. Outside the picture stands pad_value (-1: contributes -1, 0: nothing, 1: +1).
struct BinaryConvolution : Window {
  static constexpr OpInfo info{
      "BinaryConvolution",  2, 2, 1, Trait::epilogue | Trait::host, "Convolution of +1 and -1", 1,
      OpFamily::convolution};
  BinaryMode mode = BinaryMode::xnor_popcount;
  double pad_value = 0;
  std::int64_t groups = 1;
  template <class V>
  void visit(V& v) {
    Window::visit(v);
    v("mode", mode);
    v("pad_value", pad_value);
    v("groups", groups, Owner::lamina);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  NodeWork work(const WorkContext& c) const { return {.multiply_adds = c.out() * c.in(1) / c.axis(1, 0)}; }
};

/// Pads, strides and dilations with every axis filled in and auto_pad resolved for a known input size.
struct ResolvedWindow {
  Ints strides, dilations, pads_begin, pads_end;
};
/// `spatial`: the input's spatial dims, `kernel`: the kernel's. Pads of same_* on unknown sizes are left 0.
ResolvedWindow resolve(const Window& window, std::span<const Dim> spatial,
                       std::span<const std::int64_t> kernel);
/// Resolves the window of a transposed convolution; `output` are the spatial sizes that input 3 gives, or
/// empty. With them same_* take their pads from them: the total is stride * (in - 1) + extent +
/// output_padding - out, of which same_upper puts the smaller half at the end, same_lower at the beginning.
/// Without them same_* have no pads.
ResolvedWindow resolve_transposed(const ConvolutionBackpropData& op, std::span<const Dim> spatial,
                                  std::span<const std::int64_t> kernel, std::span<const Dim> output);

}  // namespace lamina
