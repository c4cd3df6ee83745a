#pragma once
/// Decision trees of a file in the form of TreeEnsemble (ops/trees.h).
#include <cstdint>
#include <utility>
#include <vector>

#include "formats/onnx/call.h"
#include "ops/trees.h"

namespace lamina::onnx {

/// Trees as a file has them: in any order, with numbers that need not be in range.
struct Forest {
  /// A child or root: an inner node, or ~leaf.
  using Child = std::int64_t;
  struct Inner {
    std::int64_t feature = 0;
    TreeTest test = TreeTest::less_equal;
    double threshold = 0;
    bool nan_is_true = false;
    Child if_true = -1, if_false = -1;
    bool is_member = false;  ///< the test is whether the feature is one of `members`
    std::vector<double> members;
  };
  struct Vote {
    std::int64_t target = 0;
    double weight = 0;
  };

  std::vector<Inner> inner;
  std::vector<Child> roots;
  std::vector<std::int64_t> leaves{0};  ///< where each leaf's votes start, and where the last one's end
  std::vector<Vote> votes;
  std::int64_t targets = 1;

  /// Throws where a number is out of range or a path goes in a circle.
  void check(const Call& c) const;
  /// Targets of which there may be rows that get no vote.
  std::vector<bool> maybe_unvoted() const;
  /// The node that computes it, in the type of x; `base` may be empty.
  ValueId add_to(Call& c, ValueId x, TreeAggregate aggregate, double unvoted, const Floats& base) const;
};

}  // namespace lamina::onnx
