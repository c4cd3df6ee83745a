#pragma once
/// Operators that join, cut and move parts of tensors.
#include "ops/eval.h"

namespace lamina {

/// Concat(x0, x1, ...): joined along axis.
struct Concat {
  static constexpr OpInfo info{
      "Concat", 1, kMany, 1, Trait::selects, "Joins tensors along an axis", 1, OpFamily::movement};
  std::int64_t axis = 0;
  template <class V>
  void visit(V& v) {
    v("axis", axis);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  std::optional<std::vector<Dim>> shape_value(ShapeValueContext& c) const;
  Verdict permute(PermuteContext& c) const;
};

/// Split(x, axis) -> num_splits equal parts.
struct Split {
  static constexpr OpInfo info{
      "Split", 2, 2, kMany, Trait::selects, "Cuts into equal parts along an axis", 1, OpFamily::movement};
  std::int64_t num_splits = 1;
  template <class V>
  void visit(V& v) {
    v("num_splits", num_splits);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  Verdict permute(PermuteContext& c) const;
};

/// VariadicSplit(x, axis, lengths) -> one part per length; one length may be -1 (what is left).
struct VariadicSplit {
  static constexpr OpInfo info{
      "VariadicSplit",   3, 3, kMany, Trait::selects, "Cuts into parts of given lengths along an axis", 1,
      OpFamily::movement};
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  Verdict permute(PermuteContext& c) const;
};

/// Slice(x, start, stop, step, axes?): per listed axis the elements start, start + step, ... before stop.
/// Negative bounds count from the end, bounds beyond the ends are clamped; without axes the first ones are
/// meant.
struct Slice {
  static constexpr OpInfo info{
      "Slice", 4, 5, 1, Trait::reads_part, "Every step-th element between two bounds", 8, OpFamily::movement};
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  std::optional<std::vector<Dim>> shape_value(ShapeValueContext& c) const;
  Verdict permute(PermuteContext& c) const;
};

/// SliceScatter(data, updates, start, stop, step, axes?): data, of which what Slice would take is replaced by
/// the updates.
struct SliceScatter {
  static constexpr OpInfo info{
      "SliceScatter",    5, 6, 1, Trait::none, "Replaces every step-th element between two bounds", 15,
      OpFamily::movement};
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// StridedSlice(x, begin, end, strides?). Masks have one element per element of begin (missing ones are 0):
/// begin_mask/end_mask 1: the bound is not used (everything from or to the end); new_axis_mask 1: inserts a
/// dimension of 1; shrink_axis_mask 1: takes the element at begin, whatever begin_mask says, and drops the
/// dimension; ellipsis_mask 1 (once): stands for all dimensions not spoken of.
struct StridedSlice {
  static constexpr OpInfo info{"StridedSlice",    3, 4, 1, Trait::reads_part, "Slice with masks", 1,
                               OpFamily::movement};
  Ints begin_mask{}, end_mask{}, new_axis_mask{}, shrink_axis_mask{}, ellipsis_mask{};
  template <class V>
  void visit(V& v) {
    v("begin_mask", begin_mask);
    v("end_mask", end_mask);
    v("new_axis_mask", new_axis_mask);
    v("shrink_axis_mask", shrink_axis_mask);
    v("ellipsis_mask", ellipsis_mask);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  Verdict permute(PermuteContext& c) const;
};

enum class PadMode : std::uint8_t { constant, edge, reflect, symmetric, wrap };
template <>
inline constexpr std::array enum_names<PadMode> = {std::string_view("constant"), std::string_view("edge"),
                                                   std::string_view("reflect"), std::string_view("symmetric"),
                                                   std::string_view("wrap")};

/// Pad(x, pads_begin, pads_end, value?): one pad per axis, negative ones crop. value has x's type, 0 when
/// absent.
struct Pad {
  static constexpr OpInfo info{
      "Pad", 3, 4, 1, Trait::selects, "Extends (or crops) at the borders", 1, OpFamily::movement};
  PadMode pad_mode = PadMode::constant;
  template <class V>
  void visit(V& v) {
    v("pad_mode", pad_mode);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  Verdict permute(PermuteContext& c) const;
};

/// Roll(x, shift, axes): element i moves to i + shift, around the end. Shifts of one axis add up.
struct Roll {
  static constexpr OpInfo info{
      "Roll", 3, 3, 1, Trait::selects, "Moves elements along axes, around the end", 7, OpFamily::movement};
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  Verdict permute(PermuteContext& c) const;
};

/// ReverseSequence(x, lengths): per index b of batch_axis the first lengths[b] elements along seq_axis are
/// reversed.
struct ReverseSequence {
  static constexpr OpInfo info{
      "ReverseSequence", 2, 2, 1, Trait::selects, "Reverses sequences of several lengths", 1,
      OpFamily::movement};
  std::int64_t batch_axis = 0;
  std::int64_t seq_axis = 1;
  template <class V>
  void visit(V& v) {
    v("batch_axis", batch_axis);
    v("seq_axis", seq_axis);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// Identity(x).
struct Identity {
  static constexpr OpInfo info{"Identity",     1, 1, 1, Trait::keeps_values, "The input itself", 16,
                               OpFamily::shape};
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  Verdict permute(PermuteContext& c) const;
};

}  // namespace lamina
