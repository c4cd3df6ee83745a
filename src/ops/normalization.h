#pragma once
/// Normalisations: batch, layer, group, mean-variance, local response, L2.
#include <optional>

#include "ops/eval.h"

namespace lamina {

/// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta along axis 1. Inputs: x, gamma, beta, mean,
/// variance.
struct BatchNormInference {
  static constexpr OpInfo info{"BatchNormInference",
                               5,
                               5,
                               1,
                               Trait::none,
                               "(x - mean) / sqrt(variance + epsilon) * gamma + beta by channel",
                               1,
                               OpFamily::normalization};
  double epsilon = 1e-5;
  template <class V>
  void visit(V& v) {
    v("epsilon", epsilon);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  NodeWork work(const WorkContext& c) const { return {.others = 2 * c.out()}; }
};

/// y = x * scale + shift, a number for each index of the axes of x from `axis` on, or one for all. Inputs: x,
/// scale, shift?. (Caffe's Scale, IR's ScaleShift until version 7.)
struct ScaleShift {
  static constexpr OpInfo info{
      "ScaleShift",           2, 3, 1, Trait::none, "x * scale + shift along the axes from `axis` on", 0,
      OpFamily::normalization};
  std::int64_t axis = 1;
  template <class V>
  void visit(V& v) {
    v("axis", axis);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  NodeWork work(const WorkContext& c) const { return {.others = 2 * c.out()}; }
};
/// The shape under which an operand of ScaleShift broadcasts to x as numpy does: ones behind its own sizes.
/// Nothing when that is not known yet.
std::optional<Shape> scale_shift_operand(const Shape& x, const Shape& operand, std::int64_t axis);

/// y = x / (bias + alpha / size^n * sum of x^2 over a window of `size` along each of the n axes)^beta.
/// Inputs: x, axes.
struct LRN {
  static constexpr OpInfo info{
      "LRN", 2, 2, 1, Trait::none, "Local response normalisation", 1, OpFamily::normalization};
  double alpha = 1e-4;
  double beta = 0.75;
  double bias = 1;
  std::int64_t size = 5;
  template <class V>
  void visit(V& v) {
    v("alpha", alpha);
    v("beta", beta);
    v("bias", bias);
    v("size", size);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  NodeWork work(const WorkContext& c) const { return {.others = 5 * c.out()}; }
};

enum class MvnEpsMode : std::uint8_t { inside_sqrt, outside_sqrt };
template <>
inline constexpr std::array enum_names<MvnEpsMode> = {std::string_view("inside_sqrt"),
                                                      std::string_view("outside_sqrt")};

/// y = (x - mean) / sqrt(variance + eps) over the axes, or / (sqrt(variance) + eps). Population variance.
/// Inputs: x, axes.
struct MVN {
  static constexpr OpInfo info{
      "MVN", 2, 2, 1, Trait::epilogue, "Mean-variance normalisation", 1, OpFamily::normalization};
  bool normalize_variance = true;
  double eps = 1e-9;
  MvnEpsMode eps_mode = MvnEpsMode::inside_sqrt;
  template <class V>
  void visit(V& v) {
    v("normalize_variance", normalize_variance);
    v("eps", eps);
    v("eps_mode", eps_mode);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  Verdict permute(PermuteContext& c) const;
  NodeWork work(const WorkContext& c) const { return {.others = 5 * c.out()}; }
};

enum class L2EpsMode : std::uint8_t { add, max };
template <>
inline constexpr std::array enum_names<L2EpsMode> = {std::string_view("add"), std::string_view("max")};

/// y = x / sqrt(sum of x^2 over the axes + eps), or / sqrt(max(sum, eps)). No axes: every element by itself.
/// Inputs: x, axes.
struct NormalizeL2 {
  static constexpr OpInfo info{
      "NormalizeL2", 2, 2, 1, Trait::epilogue, "x / sqrt(sum of squares)", 1, OpFamily::normalization};
  double eps = 1e-10;
  L2EpsMode eps_mode = L2EpsMode::add;
  template <class V>
  void visit(V& v) {
    v("eps", eps);
    v("eps_mode", eps_mode);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  Verdict permute(PermuteContext& c) const;
  NodeWork work(const WorkContext& c) const { return {.others = 5 * c.out()}; }
};

/// y = (x - mean) / sqrt(variance + epsilon) * scale + bias over the axes from `axis` on (ONNX
/// LayerNormalization). Inputs: x, scale, bias?; scale and bias broadcast to x.
struct LayerNormalization {
  static constexpr OpInfo info{"LayerNormalization",
                               2,
                               3,
                               1,
                               Trait::none,
                               "Normalisation over the last axes, with scale and bias",
                               0,
                               OpFamily::normalization};
  std::int64_t axis = -1;
  double epsilon = 1e-5;
  template <class V>
  void visit(V& v) {
    v("axis", axis);
    v("epsilon", epsilon);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  NodeWork work(const WorkContext& c) const { return {.others = 5 * c.out()}; }
};

/// y = x / sqrt(mean of x^2 + epsilon) * scale over the axes from `axis` on. Inputs: x, scale? (broadcasts to
/// x).
struct RMSNormalization {
  static constexpr OpInfo info{
      "RMSNormalization",     1, 2, 1, Trait::none, "Root mean square normalisation over the last axes", 0,
      OpFamily::normalization};
  std::int64_t axis = -1;
  double epsilon = 1e-5;
  template <class V>
  void visit(V& v) {
    v("axis", axis);
    v("epsilon", epsilon);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  NodeWork work(const WorkContext& c) const { return {.others = 5 * c.out()}; }
};

/// Mean-variance normalisation over each of num_groups groups of channels, then scale and bias by channel.
/// Inputs: x [N,C,...], scale [C], bias [C].
struct GroupNormalization {
  static constexpr OpInfo info{
      "GroupNormalization",   3, 3, 1, Trait::none, "Normalisation over groups of channels", 12,
      OpFamily::normalization};
  std::int64_t num_groups = 1;
  double epsilon = 1e-5;
  template <class V>
  void visit(V& v) {
    v("num_groups", num_groups);
    v("epsilon", epsilon);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  NodeWork work(const WorkContext& c) const { return {.others = 5 * c.out()}; }
};

/// y = x / sqrt(sum of x^2 over axis 1 + bias). Input: x.
struct GRN {
  static constexpr OpInfo info{
      "GRN", 1, 1, 1, Trait::none, "x / sqrt(sum of squares by channel + bias)", 1, OpFamily::normalization};
  double bias = 1;
  template <class V>
  void visit(V& v) {
    v("bias", bias);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  NodeWork work(const WorkContext& c) const { return {.others = 5 * c.out()}; }
};

}  // namespace lamina
