#pragma once
/// How often the best classes agree, where an output is rows of scores.
#include <optional>

#include "check/pairs.h"

namespace lamina::checking {

struct Ranking {
  std::size_t rows = 0;
  std::size_t top1 = 0;  ///< rows with the same best class
  std::size_t top5 = 0;  ///< rows in which each side's best class is among the other side's five best
};

/// Nothing where the numbers are no scores of classes, or some are not numbers.
std::optional<Ranking> ranking_of(const Pairs& p);

}  // namespace lamina::checking
