#pragma once
/// Reading and writing elements at places given by indices. Negative indices count from the end; an index
/// outside its axis is an error (bad_input) when it is met, where the operator does not say otherwise.
#include "ops/eval.h"

namespace lamina {

/// What an index outside of its axis gives: slices of zeros (OpenVINO) or an error (ONNX).
enum class OutOfRange : std::uint8_t { zeros, error };
template <>
inline constexpr std::array enum_names<OutOfRange> = {std::string_view("zeros"), std::string_view("error")};

/// y = data taken at `indices` along an axis: data[0..axis), indices[batch_dims..), data(axis..). Inputs:
/// data, indices, axis.
struct Gather {
  static constexpr OpInfo info{
      "Gather", 3, 3, 1, Trait::reads_part, "Takes slices along one axis by index", 1, OpFamily::movement};
  std::int64_t batch_dims = 0;
  OutOfRange out_of_range = OutOfRange::zeros;
  template <class V>
  void visit(V& v) {
    v("batch_dims", batch_dims);
    v("out_of_range", out_of_range, Owner::lamina);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  std::optional<std::vector<Dim>> shape_value(ShapeValueContext& c) const;
  Verdict permute(PermuteContext& c) const;
};

/// y[i,j,k] = data[index[i,j,k], j, k] (axis 0). Inputs: data, indices of the same rank.
struct GatherElements {
  static constexpr OpInfo info{
      "GatherElements",  2, 2, 1, Trait::reads_part, "Takes single elements along one axis by index", 6,
      OpFamily::movement};
  std::int64_t axis = 0;
  template <class V>
  void visit(V& v) {
    v("axis", axis);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// The last axis of the indices addresses the first axes (after the batch) of the data. Inputs: data,
/// indices.
struct GatherND {
  static constexpr OpInfo info{
      "GatherND", 2, 2, 1, Trait::reads_part, "Takes slices by tuples of indices", 5, OpFamily::movement};
  std::int64_t batch_dims = 0;
  template <class V>
  void visit(V& v) {
    v("batch_dims", batch_dims);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// Full beams of a beam search. Inputs: step_ids [T, N, beam], parent_idx (same), max_seq_len [N], end_token
/// (one element).
struct GatherTree {
  static constexpr OpInfo info{
      "GatherTree",      4, 4, 1, Trait::reads_part, "Follows the parents of beams back through time", 1,
      OpFamily::movement};
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// data with slices along an axis replaced. Inputs: data, indices, updates, axis.
struct ScatterUpdate {
  static constexpr OpInfo info{
      "ScatterUpdate",   4, 4, 1, Trait::selects, "Replaces slices along one axis by index", 3,
      OpFamily::movement};
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

enum class ElementsReduction : std::uint8_t { none, sum, prod, min, max, mean };
template <>
inline constexpr std::array enum_names<ElementsReduction> = {
    std::string_view("none"), std::string_view("sum"), std::string_view("prod"),
    std::string_view("min"),  std::string_view("max"), std::string_view("mean")};

/// y = data; y[index[i,j], j] = updates[i,j] (axis 0), in row-major order. Inputs: data, indices, updates,
/// axis.
struct ScatterElementsUpdate {
  static constexpr OpInfo info{
      "ScatterElementsUpdate", 4, 4, 1, Trait::selects, "Writes single elements along one axis by index", 3,
      OpFamily::movement};
  ElementsReduction reduction = ElementsReduction::none;
  bool use_init_val = true;  ///< the data's own element takes part in the reduction
  template <class V>
  void visit(V& v) {
    v("reduction", reduction);
    v("use_init_val", use_init_val);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

enum class SlicesReduction : std::uint8_t { none, sum, sub, prod, min, max };
template <>
inline constexpr std::array enum_names<SlicesReduction> = {std::string_view("none"), std::string_view("sum"),
                                                           std::string_view("sub"),  std::string_view("prod"),
                                                           std::string_view("min"),  std::string_view("max")};

/// y = data; y[indices[i,:], ...] = updates[i, ...]. Inputs: data, indices, updates.
struct ScatterNDUpdate {
  static constexpr OpInfo info{
      "ScatterNDUpdate", 3, 3, 1, Trait::selects, "Writes slices by tuples of indices", 3,
      OpFamily::movement};
  SlicesReduction reduction = SlicesReduction::none;
  template <class V>
  void visit(V& v) {
    v("reduction", reduction);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

}  // namespace lamina
