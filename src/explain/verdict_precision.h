#pragma once
/// The sentences of explain's verdict on 8 bits and on bf16.
#include <string>
#include <vector>

#include "explain/findings.h"
#include "explain/product_costs.h"

namespace lamina {

inline constexpr double kWorthSaying = 0.03;  // of the time
inline constexpr std::size_t kMostNames = 3;

/// The facts from which the sentences are made.
struct PrecisionFacts {
  const Findings& all;
  const Compiled& compiled;
  const Machine& machine;
  bool here;        ///< `machine` is the one that this process runs on
  double estimate;  ///< microseconds of all steps
  const std::vector<ProductCost>& products;
  std::string dearest_kind;  ///< the kind of operator that takes most of the time; empty: none does
};

/// A sentence about one type of numbers.
struct TypeVerdict {
  std::string text;
  double gain = 0;  ///< the share of the estimate that products would save; 0 if they have the type already
};

struct PrecisionVerdict {
  TypeVerdict integers, bf16;
};
PrecisionVerdict precision_verdict(const PrecisionFacts& facts);

}  // namespace lamina
