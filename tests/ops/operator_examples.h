#pragma once
/// A small valid graph around each operator that has attributes or operands that say axes, sizes, places.
#include <string>
#include <vector>

#include "tests/ops/examples_of_arithmetic.h"
#include "tests/ops/examples_of_movement.h"

namespace lamina::testing {

inline const std::vector<std::string>& operator_examples() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> out(std::begin(kExamplesOfMovement), std::end(kExamplesOfMovement));
    out.insert(out.end(), std::begin(kExamplesOfArithmetic), std::end(kExamplesOfArithmetic));
    return out;
  }();
  return all;
}

}  // namespace lamina::testing
