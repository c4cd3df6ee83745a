#pragma once
/// A graph of the pattern, rewritten, planned and run, beside the interpreter on the graph as it is.
#include <functional>
#include <string>

#include "tests/quantised/pattern.h"

namespace lamina::testing {

struct Trial {
  std::string problem;  ///< what is wrong; empty when nothing is
  /// Operators of the optimised graph where the pattern is not one node, and the rules' refusals; else empty.
  std::string gap;
  std::size_t elements = 0;
  std::size_t by_roundings = 0;  ///< further off than results may be, as roundings on the way explain
  std::size_t a_step_off = 0;
};

/// The scale of what is stored fits the values that come up. `exact`: ties are ties in any order of sums, so
/// that integers must be the same. `fault`: what is done to the optimised graph.
Trial tried(Pattern p, bool exact = false, const std::function<void(Graph&)>& fault = {});

/// What is wrong with i32 sums of the pattern's product: in a plan, and of every kernel that offers them.
std::string wrong_sums(const Pattern& p);

}  // namespace lamina::testing
