#pragma once
/// The plans of a model's graph and of all its deferred subgraphs, within one bound.
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/fork_safe_mutex.h"
#include "plan/plan.h"

namespace lamina {

class Program;

/// A plan and the program of its deferred subgraph, which a request holds while it runs them.
struct Planned {
  std::shared_ptr<const Plan> plan;
  std::shared_ptr<const Program> rest;  ///< null when nothing waits
  std::size_t bytes = 0;                ///< beside the model's own weights
};

/// Keeps the most recently used plans. A plan is made once, however many threads ask for it at the same time.
/// Thread-safe.
class PlanCache {
 public:
  /// Keeps at most that many plans, which take at most that many bytes; one plan is kept whatever its size.
  PlanCache(std::size_t plans, std::size_t bytes) : most_plans_(plans), most_bytes_(bytes) {}

  using Make = std::function<std::shared_ptr<const Planned>()>;
  /// The plan under `key`; if there is none, one thread makes it and the others wait. If that thread fails,
  /// it throws, and the next waiting thread tries. `above`: keys of the plans that the subgraph of `key` was
  /// deferred from, outermost first; they count as used now, too, and are dropped after it.
  ///
  /// `make` runs isolated: while it waits for loops of its own it takes up no other task of the caller's
  /// arena, which might wait for the plan that is being made. It may call the user's code. Waiting threads
  /// sleep; they are given no work that the maker could not do itself.
  std::shared_ptr<const Planned> get(const std::string& key, const std::vector<std::string>& above,
                                     const Make& make);

  std::size_t plans() const;
  /// All kept plans by key, in the order of the keys.
  std::map<std::string, std::shared_ptr<const Planned>> all() const;
  std::size_t bytes() const;

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const Planned> planned;
  };
  using Entries = std::list<Entry>;
  /// A plan that is being made, for which other threads may wait.
  struct PendingPlan {
    std::string key;
    ForkSafeMutex mutex;                     ///< held by the maker until the plan is made
    std::shared_ptr<const Planned> planned;  ///< null when it failed
  };
  Entries::iterator find(const std::string& key);
  void touch(const std::vector<std::string>& above);
  Entries keep(Entries entry, const std::vector<std::string>& above);
  std::shared_ptr<const Planned> make_pending(const std::shared_ptr<PendingPlan>& pending, Entries entry,
                                              const std::vector<std::string>& above, const Make& make,
                                              std::unique_lock<std::mutex>& lock);

  std::size_t most_plans_, most_bytes_;
  mutable std::mutex mutex_;
  Entries entries_;  // most recently used first
  std::list<std::shared_ptr<PendingPlan>> pending_;
};

}  // namespace lamina
