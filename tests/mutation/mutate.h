#pragma once
/// Changes of a model that leave its file well formed: other attributes, types, shapes, operators and wires,
/// parts that come twice, in another order, from another model, or not at all.
#include "base/random.h"
#include "tests/mutation/tree.h"

namespace lamina::testing {

/// Parts of all models of a format, by their role.
class PartBank {
 public:
  void add(const Tree& tree);
  /// Null when there is none.
  const Tree* any(const std::string& role, SplitMix& random) const;

 private:
  std::map<std::string, std::vector<Tree>> parts_;
  std::map<std::string, std::size_t> seen_;
};

/// One to five changes; the same for the same state of `random`.
TreeModel mutated(TreeModel model, const PartBank& bank, SplitMix& random);

}  // namespace lamina::testing
