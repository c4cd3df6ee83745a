#pragma once
/// The outcome of each layer of a model's file: it runs, was fused, removed, folded, ...
#include <map>

#include "api/compiled.h"
#include "exec/runner.h"

namespace lamina {

/// One node of a plan that stands for a layer, alone or with others.
struct OutcomeNode {
  const Plan* plan = nullptr;
  NodeId node;
  const Choice* choice = nullptr;
  const PlanStep* step = nullptr;  ///< null: nothing runs (a view)
  bool representative = false;     ///< the node is named and timed by this layer
  SourceId by;                     ///< else by this one
};

struct LayerOutcome {
  enum class Kind : std::uint8_t {
    runs,      ///< a step of its own, perhaps with others in it
    fused,     ///< in the step of another layer
    free,      ///< nothing runs: the same memory under another shape
    removed,   ///< no node stands for it any more
    constant,  ///< the file's way to hold a constant: there never was a node
    body,      ///< in a body of control flow
    variable,  ///< reads or writes a variable, which the request keeps: an input or result of the plan
    waiting,   ///< behind a shape that is known at run time only
    untaken,   ///< in the branch of an If that became the other one
  };
  Kind kind = Kind::removed;
  SourceId id;
  std::string name, type;
  std::string rule;    ///< that fused or removed it
  std::string reason;  ///< of a removal
  std::string inside;  ///< the node that owns the body in which it is, or was
  std::vector<OutcomeNode> nodes;
  std::vector<LedgerEntry> history;  ///< in order; the layers of each entry are left out
};
std::string_view name_of(LayerOutcome::Kind kind);
/// Why rules that put nodes into each other (they are called "fuse-...") did not do so with this layer.
std::vector<LedgerEntry> fusing_refusals(const LayerOutcome& outcome);

/// All layers of the file, in its order.
std::vector<LayerOutcome> layer_outcomes(const Compiled& compiled,
                                         const std::vector<std::shared_ptr<const Plan>>& plans);

}  // namespace lamina
