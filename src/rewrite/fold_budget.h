#pragma once
/// What evaluating constants may cost while one graph is rewritten.
#include <cstdint>
#include <string_view>

#include "graph/graph.h"

namespace lamina {

/// How the refusal of what is beyond the budget begins.
inline constexpr std::string_view kNotFolded = "it is computed at each run";

/// One bound of work and of memory for all that rules fold. What is not folded is computed when the model
/// runs. It counts operations and bytes, no time: what is folded does not depend on the machine or its load.
/// It grows with the constants that the graph has to begin with, so that models fold as much as their weights
/// justify, and a small file cannot ask for much.
class FoldBudget {
 public:
  /// For a graph whose shapes have become known: what the model's own constants justify was folded before.
  FoldBudget() = default;
  explicit FoldBudget(const Graph& graph);

  std::int64_t work() const { return work_; }
  std::int64_t bytes() const { return bytes_; }
  /// Takes work, and memory that a result needs more than what goes with its operands. May be negative.
  void take(std::int64_t work, std::int64_t bytes) {
    work_ -= work;
    bytes_ -= bytes;
  }

 private:
  // Some seconds of reference evaluation on one thread, and what masks and tables of large models need.
  std::int64_t work_ = 4'000'000'000, bytes_ = std::int64_t{1} << 30;
};

}  // namespace lamina
