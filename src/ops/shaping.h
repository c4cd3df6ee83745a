#pragma once
/// Operators that give the same elements another shape or order.
#include "ops/eval.h"

namespace lamina {

/// Reshape(x, pattern): one -1 stands for what is left; with special_zero a 0 keeps x's size at that place.
struct Reshape {
  static constexpr OpInfo info{
      "Reshape",       2,         2, 1, Trait::keeps_values, "The same elements under another shape", 1,
      OpFamily::shape, "const to"};
  bool special_zero = false;
  template <class V>
  void visit(V& v) {
    v("special_zero", special_zero);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// Squeeze(x, axes?): without axes every dimension of 1 goes. allow_axis_skip leaves axes that are not 1.
struct Squeeze {
  static constexpr OpInfo info{
      "Squeeze", 1, 2, 1, Trait::keeps_values, "Removes dimensions of 1", 1, OpFamily::shape, "const axes"};
  bool allow_axis_skip = false;
  template <class V>
  void visit(V& v) {
    v("allow_axis_skip", allow_axis_skip);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// Unsqueeze(x, axes): axes count in the output's shape.
struct Unsqueeze {
  static constexpr OpInfo info{
      "Unsqueeze", 2, 2, 1, Trait::keeps_values, "Inserts dimensions of 1", 1, OpFamily::shape, "const axes"};
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// Transpose(x, order?): output axis i is input axis order[i]; without an order (or with an empty one)
/// reversed. Negative axes are refused, as ONNX and OpenVINO do.
struct Transpose {
  static constexpr OpInfo info{"Transpose",       1, 2, 1, Trait::keeps_elements, "Permutes the axes", 1,
                               OpFamily::movement};
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// What a Transpose of `rank` axes does: the order given, or the reversed axes where that is empty. Inference
/// has checked that it is a permutation.
Ints transpose_order(Ints given, std::size_t rank);

/// ShapeOf(x): the sizes as a tensor of i64 or i32.
struct ShapeOf {
  static constexpr OpInfo info{"ShapeOf",      1, 1, 1, Trait::selects, "The shape as a tensor", 1,
                               OpFamily::shape};
  ElementType output_type = ElementType::i64;
  template <class V>
  void visit(V& v) {
    v("output_type", output_type);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  std::optional<std::vector<Dim>> shape_value(ShapeValueContext& c) const;
};

enum class BroadcastMode : std::uint8_t { numpy, bidirectional, explicit_ };
template <>
inline constexpr std::array enum_names<BroadcastMode> = {
    std::string_view("numpy"), std::string_view("bidirectional"), std::string_view("explicit")};

/// Broadcast(x, target_shape, axes?): numpy: x grows to target; bidirectional: both grow; explicit: dimension
/// i of x is dimension axes[i] of the output.
struct Broadcast {
  static constexpr OpInfo info{
      "Broadcast",        2,         3, 1, Trait::selects, "Repeats along dimensions of 1", 1,
      OpFamily::movement, "const to"};
  BroadcastMode mode = BroadcastMode::numpy;
  template <class V>
  void visit(V& v) {
    v("mode", mode);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// Tile(x, repeats): the shorter of shape and repeats is extended by ones in front.
struct Tile {
  static constexpr OpInfo info{
      "Tile", 2, 2, 1, Trait::selects, "Repeats the whole tensor along axes", 1, OpFamily::movement};
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  Verdict permute(PermuteContext& c) const;
};

enum class DepthMode : std::uint8_t { blocks_first, depth_first };
template <>
inline constexpr std::array enum_names<DepthMode> = {std::string_view("blocks_first"),
                                                     std::string_view("depth_first")};

/// DepthToSpace(x [N, C * block_size^k, D1..Dk]) -> [N, C, D1 * block_size, ...]
struct DepthToSpace {
  static constexpr OpInfo info{
      "DepthToSpace",    1, 1, 1, Trait::keeps_elements, "Moves channels into blocks of space", 1,
      OpFamily::movement};
  DepthMode mode = DepthMode::blocks_first;
  std::int64_t block_size = 1;
  template <class V>
  void visit(V& v) {
    v("mode", mode);
    v("block_size", block_size);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// SpaceToDepth(x [N, C, D1 * block_size, ...]) -> [N, C * block_size^k, D1..Dk]
struct SpaceToDepth {
  static constexpr OpInfo info{
      "SpaceToDepth",    1, 1, 1, Trait::keeps_elements, "Moves blocks of space into channels", 1,
      OpFamily::movement};
  DepthMode mode = DepthMode::blocks_first;
  std::int64_t block_size = 1;
  template <class V>
  void visit(V& v) {
    v("mode", mode);
    v("block_size", block_size);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// ShuffleChannels(x): the axis as [group, size / group], transposed.
struct ShuffleChannels {
  static constexpr OpInfo info{
      "ShuffleChannels", 1, 1, 1, Trait::keeps_elements, "Interleaves groups of channels", 1,
      OpFamily::movement};
  std::int64_t axis = 1;
  std::int64_t group = 1;
  template <class V>
  void visit(V& v) {
    v("axis", axis);
    v("group", group);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  Verdict permute(PermuteContext& c) const;
};

/// BatchToSpace(x, block_shape, crops_begin, crops_end): one element per axis, block_shape[0] is 1.
struct BatchToSpace {
  static constexpr OpInfo info{
      "BatchToSpace",    4, 4, 1, Trait::selects, "Moves the batch into blocks of space, then crops", 2,
      OpFamily::movement};
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  Verdict permute(PermuteContext& c) const;
};

/// SpaceToBatch(x, block_shape, pads_begin, pads_end): one element per axis, block_shape[0] is 1.
struct SpaceToBatch {
  static constexpr OpInfo info{
      "SpaceToBatch",    4, 4, 1, Trait::selects, "Pads, then moves blocks of space into the batch", 2,
      OpFamily::movement};
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  Verdict permute(PermuteContext& c) const;
};

}  // namespace lamina
