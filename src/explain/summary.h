#pragma once
/// How much of a model was fused, and which element-wise operators run as steps of their own.
#include "api/layer_outcome.h"
#include "explain/layers.h"

namespace lamina {

/// An element-wise step that no compute node took in.
struct LoneStep {
  const Plan* plan = nullptr;
  const PlanStep* step = nullptr;
  std::string name, operators;
  std::vector<std::string> layers;  ///< of the file
  /// The convolution, matrix product or pooling whose result it reads, with nothing else reading that and the
  /// shape unchanged; empty when there is none: then there is nothing to join.
  std::string behind;
  std::vector<std::string> reasons;  ///< a sentence each
  bool decomposed = false;           ///< a rule had joined it; the plan made it a node again
  bool reads_inputs_only = false;  ///< all that it reads are inputs of the graph: there is no step before it
};
std::vector<LoneStep> lone_steps(const std::vector<std::shared_ptr<const Plan>>& plans,
                                 const std::vector<LayerOutcome>& outcomes);

/// Layers of the file that run in the node of another layer, by the rule that put them there.
std::map<std::string, std::size_t> fused_layers(const std::vector<LayerOutcome>& outcomes);

/// What each rule did in compiling and in planning.
std::map<std::string, Ledger::Count> rule_counts(const Compiled& compiled,
                                                 const std::vector<std::shared_ptr<const Plan>>& plans);
/// Rules of libraries that were left out in compiling or planning, and why.
std::map<std::string, std::string> stopped_rules(const Compiled& compiled,
                                                 const std::vector<std::shared_ptr<const Plan>>& plans);

}  // namespace lamina
