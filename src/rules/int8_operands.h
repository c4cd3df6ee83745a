#pragma once
/// The operands of a product whose integers can be multiplied, read through what makes numbers of them.
#include <cstdint>
#include <vector>

#include "rules/int8.h"
#include "rules/weights.h"

namespace lamina::int8 {

/// What a product multiplies: (integers - zero_point) * scale + offset.
struct Source {
  ValueId integers;
  std::int64_t zero_point = 0;
  std::vector<double> scale;  ///< one, or where each channel has a group of its own one for each
  double offset = 0;
  Levels levels;  ///< the nodes that made floats of them
};

/// Integers with one scale and zero point, or one for each output channel.
struct Factors {
  ValueId value;   ///< where they are no constant
  Tensor numbers;  ///< else: i8 where all differences from their zero points fit; twice those, i16, if some
                   ///< of these are halves
  Tensor zero_points;
  std::vector<double> scale{1};
  std::vector<NodeId> nodes;  ///< nodes that converted them to floats
};

/// Nothing where the input is no integers; a reason where there are some that cannot be multiplied.
Found<Source> source_of(const Match& m, const Node& product);
/// The factors of the weights, constant or computed.
Found<Factors> factors_of(const Match& m, const Node& product);

/// A border of zeros, or one that depends on sizes.
bool pads(const Node& product);
/// Each of the longer one's, times the other's at the same place or its only one.
std::vector<double> times(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace lamina::int8
