#pragma once
/// Plans that were made before.
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
  /// That for so many threads: for others kernels may differ, and how they want their weights. Nothing when
  /// there is none. Throws Error(bad_file) when it is damaged.
  virtual std::optional<KeptPlan> find(const std::string& key, int threads) const = 0;
};

}  // namespace lamina
