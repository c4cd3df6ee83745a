#pragma once
/// Plans that were made in an earlier process or compilation.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace lamina {

/// Everything needed to rebuild a plan without selecting kernels.
struct KeptPlan {
  Graph graph;
  std::vector<std::pair<NodeId, Recipe>> recipes;
};

/// Finds plans by the keys of a program (src/saved has those of files). Thread-safe.
class KeptPlans {
 public:
  virtual ~KeptPlans() = default;
  /// The kept plan for this number of threads, if any: for other numbers kernels and the packing of weights
  /// may differ. Throws Error(bad_file) if it is damaged.
  virtual std::optional<KeptPlan> find(const std::string& key, int threads) const = 0;
};

}  // namespace lamina
