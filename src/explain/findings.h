#pragma once
/// What is found out about a compiled model: what became of each layer, with times when there was a run.
#include <string>
#include <vector>

#include "api/layer_outcome.h"
#include "explain/layers.h"

namespace lamina {

/// The outcomes, and times when there was a run.
struct Findings {
  std::vector<std::shared_ptr<const Plan>> plans;
  Profile profile;  ///< empty without a run
  std::vector<LayerOutcome> outcomes;

  bool timed() const { return profile.runs() > 0; }
  double share(double microseconds) const { return profile.whole() > 0 ? microseconds / profile.whole() : 0; }
  /// What the plans expect on one thread.
  double estimate() const {
    double sum = 0;
    for (const auto& plan : plans)
      for (const auto& step : plan->steps) sum += step.cost;
    return sum;
  }
  /// Estimate of the steps that are named after a layer.
  double estimate(const LayerOutcome& f) const {
    double sum = 0;
    for (const auto& n : f.nodes)
      if (n.representative && n.step) sum += n.step->cost;
    return sum;
  }
  /// Time of the steps that a layer gives its name to.
  double time(const LayerOutcome& f) const {
    double sum = 0;
    for (const auto& n : f.nodes)
      if (n.representative && n.step) sum += profile.of(*n.step);
    return sum;
  }
  const std::string& name(SourceId id) const { return outcomes[id.index].name; }
};

/// The other layers in a layer's nodes; of very many the first ones, and the number of the others.
std::vector<std::string> companions(const Findings& all, const LayerOutcome& f);
/// The outcome in a few words.
std::string in_short(const Findings& all, const LayerOutcome& f);

}  // namespace lamina
