#pragma once
/// Tensors made from a rule (ranges, one-hot, random numbers), sums of products, sampling and Fourier
/// transforms.
#include "ops/eval.h"

namespace lamina {

/// start, start + step, ... before stop. Inputs: start, stop, step (one element each).
struct Range {
  static constexpr OpInfo info{"Range",        3, 3, 1, Trait::data_dependent, "Numbers at equal steps", 1,
                               OpFamily::shape};
  ElementType output_type = ElementType::f32;
  template <class V>
  void visit(V& v) {
    v("output_type", output_type);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

enum class NegativeIndices : std::uint8_t { ignore_negative, normalize };
template <>
inline constexpr std::array enum_names<NegativeIndices> = {std::string_view("ignore_negative"),
                                                           std::string_view("normalize")};

/// A new axis of `depth`, on_value at each index and off_value elsewhere; indices outside give off_value
/// only. Inputs: indices, depth (one element), on_value, off_value.
struct OneHot {
  static constexpr OpInfo info{
      "OneHot", 4, 4, 1, Trait::none, "Indices as rows with one element switched on", 1, OpFamily::shape};
  std::int64_t axis = -1;  ///< of the output
  NegativeIndices negative_indices_mode = NegativeIndices::ignore_negative;
  template <class V>
  void visit(V& v) {
    v("axis", axis);
    v("negative_indices_mode", negative_indices_mode);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// Running sums along an axis. Inputs: x, axis (one element, optional: 0).
struct CumSum {
  static constexpr OpInfo info{"CumSum",           1, 2, 1, Trait::sums, "Running sums along an axis", 3,
                               OpFamily::reduction};
  bool exclusive = false, reverse = false;
  template <class V>
  void visit(V& v) {
    v("exclusive", exclusive);
    v("reverse", reverse);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  Verdict permute(PermuteContext& c) const;
};

/// Running products along an axis. Inputs: x, axis (one element, optional: 0).
struct CumProd {
  static constexpr OpInfo info{"CumProd",          1, 2, 1, Trait::none, "Running products along an axis", 0,
                               OpFamily::reduction};
  bool exclusive = false, reverse = false;
  template <class V>
  void visit(V& v) {
    v("exclusive", exclusive);
    v("reverse", reverse);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// Ones on a diagonal. Inputs: rows, columns, diagonal index (positive: above), batch shape (optional).
struct Eye {
  static constexpr OpInfo info{"Eye",          3, 4, 1, Trait::none, "Ones on a diagonal, else zeros", 9,
                               OpFamily::shape};
  ElementType output_type = ElementType::f32;
  template <class V>
  void visit(V& v) {
    v("output_type", output_type);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// The upper or lower triangle of the last two axes, else zeros. Inputs: x, k (one element, optional: 0).
struct Trilu {
  static constexpr OpInfo info{
      "Trilu", 1, 2, 1, Trait::selects, "Upper or lower triangle of matrices", 0, OpFamily::movement};
  bool upper = true;
  template <class V>
  void visit(V& v) {
    v("upper", upper);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// Uniform in [min, max). The same seeds give the same numbers each time; where both are 0, which means that
/// none is given, the numbers are others each time, RepeatedDraws aside. Inputs: shape, min, max (one element
/// each).
struct RandomUniform {
  static constexpr OpInfo info{"RandomUniform",          3, 3, 1, Trait::impure | Trait::data_dependent,
                               "Uniform random numbers", 8};
  ElementType output_type = ElementType::f32;
  std::int64_t global_seed = 0, op_seed = 0;
  template <class V>
  void visit(V& v) {
    v("output_type", output_type);
    v("global_seed", global_seed);
    v("op_seed", op_seed);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// Normally distributed; seeds as those of RandomUniform. Inputs: shape, mean, standard deviation (one
/// element each).
struct RandomNormal {
  static constexpr OpInfo info{"RandomNormal",         3, 3, 1, Trait::impure | Trait::data_dependent,
                               "Normal random numbers"};
  ElementType output_type = ElementType::f32;
  std::int64_t global_seed = 0, op_seed = 0;
  template <class V>
  void visit(V& v) {
    v("output_type", output_type);
    v("global_seed", global_seed);
    v("op_seed", op_seed);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// Einstein summation, with ellipsis, repeated letters and an implicit output. Inputs: one per term.
struct Einsum {
  static constexpr OpInfo info{
      "Einsum", 1, kMany, 1, Trait::none, "Sums of products over named axes", 7, OpFamily::matmul};
  std::string equation;
  template <class V>
  void visit(V& v) {
    v("equation", equation);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// The axes of an Einsum's inputs and of its result as labels, ellipses spelled out. Axes with one label are
/// of one size or repeat.
struct EinsumTerms {
  using Labels = std::vector<int>;
  std::vector<Labels> inputs;
  Labels out;
};
/// Nothing while a rank is not known. Throws where the equation does not fit.
std::optional<EinsumTerms> einsum_terms(const Einsum& op, const InferContext& c);

enum class SampleMode : std::uint8_t { bilinear, bicubic, nearest };
template <>
inline constexpr std::array enum_names<SampleMode> = {
    std::string_view("bilinear"), std::string_view("bicubic"), std::string_view("nearest")};
enum class SamplePadding : std::uint8_t { zeros, border, reflection };
template <>
inline constexpr std::array enum_names<SamplePadding> = {
    std::string_view("zeros"), std::string_view("border"), std::string_view("reflection")};

/// The picture at places of a grid in [-1, 1]. Inputs: x [N, C, spatial...], grid [N, out spatial..., r], r =
/// 2 or 3 coordinates, the last axis first (x, y, z).
struct GridSample {
  static constexpr OpInfo info{
      "GridSample", 2, 2, 1, Trait::none, "Samples an image at the points of a grid", 9, OpFamily::pooling};
  bool align_corners = false;
  SampleMode mode = SampleMode::bilinear;
  SamplePadding padding_mode = SamplePadding::zeros;
  template <class V>
  void visit(V& v) {
    v("align_corners", align_corners);
    v("mode", mode);
    v("padding_mode", padding_mode);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  NodeWork work(const WorkContext& c) const { return {.others = 4 * c.out()}; }
};

/// Fourier transform of complex numbers [..., 2]; axes do not count the last one. Inputs: x, axes, signal
/// size (optional, -1 keeps). Signals are cut or padded with zeros to the size.
struct DFT {
  static constexpr OpInfo info{"DFT", 2, 3, 1, Trait::none, "Discrete Fourier transform, complex to complex",
                               7};
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// Inverse of DFT, divided by the number of elements.
struct IDFT {
  static constexpr OpInfo info{
      "IDFT", 2, 3, 1, Trait::none, "Inverse discrete Fourier transform, complex to complex", 7};
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// Fourier transform of real numbers: the last of the axes keeps n/2 + 1 values. Inputs as DFT, x without the
/// axis of 2.
struct RDFT {
  static constexpr OpInfo info{"RDFT", 2, 3, 1, Trait::none, "Discrete Fourier transform, real to complex",
                               9};
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// Inverse of RDFT: complex [..., 2] to real; the last of the axes gets its signal size, or 2(n - 1).
struct IRDFT {
  static constexpr OpInfo info{
      "IRDFT", 2, 3, 1, Trait::none, "Inverse discrete Fourier transform, complex to real", 9};
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// Spectra of overlapping frames. Inputs: signal [N, L] or [L], window [w] (w <= frame size, centred), frame
/// size, frame step (one element each). Output [N, frames, size/2 + 1, 2], or frames and frequencies
/// exchanged.
struct STFT {
  static constexpr OpInfo info{"STFT", 4, 4, 1, Trait::none, "Short-time Fourier transform of real signals",
                               15};
  bool transpose_frames = false;  ///< frequencies before frames
  template <class V>
  void visit(V& v) {
    v("transpose_frames", transpose_frames);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

}  // namespace lamina
