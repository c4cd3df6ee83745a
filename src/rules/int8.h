#pragma once
/// What rules know of quantised layers: values that stand for integers of 8 bits, and products of such.
/// Integers, scales and zero points are all in the graph: a product of integers gives i32, behind which stand
/// Convert, Multiply by the scales, Add of the bias, and all that was there before.
#include "rules/support.h"

namespace lamina::int8 {

/// A value that is (integers - zero_point) * scale, with one of each for all elements.
struct Levels {
  NodeId step;  ///< the Dequantize
  ValueId integers;
  float scale = 1;
  std::int64_t zero_point = 0;
  float offset = 0;  ///< where 0 is no level: added behind
  NodeId shift;      ///< by this node; invalid: none
};
/// Nothing where no Dequantize of 8 bits gives the value; a reason where it has no single constant scale, or
/// one that is not positive.
Found<Levels> levels_of(const Match& m, ValueId v);
/// A Quantize to, or a Dequantize of 8 bits, with one scale and zero point, both constant.
bool has_one_step(const Graph& graph, const Node& node);
/// Sizes from this axis on are known.
bool known_from(std::size_t axis, const Shape& shape);
/// Integers of 8 bits times that scale are no infinities.
bool numbers_are_finite(double scale);
/// levels_of(), or levels with one number added afterwards.
Found<Levels> shifted_levels_of(const Match& m, ValueId v);
/// Why numbers that a Dequantize or FakeQuantize has made are none here; no refusal where none has.
Verdict no_levels_near(const Match& m, ValueId v);
/// Equal integers are equal numbers.
bool same_levels(const Graph& graph, const Levels& a, const Levels& b);

/// Adds what makes numbers of other integers as `like` says.
ValueId dequantized(Rewrite& r, ValueId integers, const Levels& like);
/// What made numbers of them goes where nobody but the value's only reader has it.
void absorb(Rewrite& r, const Levels& levels);
/// A constant zero point of that type; invalid for 0.
ValueId zero_point(Rewrite& r, ElementType type, std::int64_t zero_point);

/// A product of integers.
bool multiplies_integers(const Graph& graph, const Node& node);
/// A pooling that gives f32 means of integers.
bool averages_integers(const Graph& graph, const Node& node);
/// From the sums of such a product to f32.
bool widens_sums(const Graph& graph, const Node& node);

/// A node of element-wise operators.
bool is_group(const Node& node);
/// The reader can make numbers of 8-bit integers itself, where it reads f32 now.
bool can_read(const Graph& graph, const Use& use);
/// A Dequantize of 8 bits by one scale, which all readers can do themselves.
bool is_left_to_readers(const Graph& graph, const Node& node);

}  // namespace lamina::int8
