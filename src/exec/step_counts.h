#pragma once
/// Times of a request's timed runs, over all plans.
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "exec/timing.h"

namespace lamina {

/// A plan, followed by the plans of its deferred subgraphs.
using PlanChain = std::vector<std::shared_ptr<const Plan>>;

/// A node of a plan in words, which remain valid without the plan.
struct NodeName {
  std::string name;               ///< what a person calls it; of a model's input or output: its name
  std::string op;                 ///< empty: no node
  std::vector<SourceId> sources;  ///< layers of the file that it stands for
};

/// All timed runs of one step. Steps of several plans that do the same are one.
struct StepCount {
  NodeName node;       ///< node that the step runs; for a move the node that made the value
  bool moves = false;  ///< copies a tensor between layouts
  // The reader of a move, and the layouts.
  NodeName reader;
  Layout from = Layout::plain, to = Layout::plain;
  std::string kernel;                            ///< in the last run of it
  std::uint64_t runs = 0;                        ///< runs that the step was a part of
  std::uint64_t all_runs = 0;                    ///< all counted runs
  bool latest = false;                           ///< it was a part of the last one
  double last = 0, sum = 0, least = 0, cpu = 0;  ///< microseconds; cpu: of all runs
  LayerMarks inside;                             ///< of control flow: layers in its bodies that have run
};

/// Counts of one request. They outlive plans: a step's description is copied at the first run of its plan.
/// Not thread-safe.
class StepCounts {
 public:
  /// The counter of a plan's step, and its kernel's label.
  struct Slot {
    std::uint32_t count, label;
  };
  using Slots = std::vector<Slot>;

  /// Counters by step. `depth`: the number of plans that this one is a deferred subgraph of.
  Slots slots_of(const Plan& plan, std::size_t depth);
  /// Counts a run; its plans' times follow.
  void begin_run() noexcept { ++runs_; }
  void add(const Slots& slots, const StepTimes& times);
  void forget() noexcept;
  bool any() const noexcept { return runs_ > 0; }
  /// Counts of the steps that have run, in the order in which they were met.
  std::vector<StepCount> all() const;

 private:
  /// Identifies the same step in all plans: its node, or the value and layouts of a reorder; the depth; its
  /// number among equal ones.
  using Key = std::tuple<std::string, std::string, Layout, Layout, std::size_t, std::size_t>;
  /// The figures that each run changes, close together in memory.
  struct Figures {
    double last = 0, sum = 0, least = 0, cpu = 0;
    std::uint64_t runs = 0, last_run = 0;
    std::uint32_t label = 0;
  };
  std::uint32_t entry_of(const Key& key, StepCount count);
  std::uint32_t label_of(const std::string& label);

  std::uint64_t runs_ = 0;
  std::vector<StepCount> steps_;  // without figures
  std::vector<Figures> figures_;  // of the same
  std::vector<std::string> labels_;
  std::map<Key, std::uint32_t> by_key_;
};

}  // namespace lamina
