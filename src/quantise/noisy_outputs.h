#pragma once
/// How far the outputs of a quantised model are from those of its f32 model, for any setting of the switches
/// between the two.
#include <limits>
#include <vector>

#include "quantise/drift.h"
#include "quantise/layer_noise.h"
#include "quantise/switched.h"

namespace lamina {

/// The figures of an output.
OutputNoise output_noise(const std::string& name, const Drift& drift);

struct NoisyModels {
  const Model &quantised, &f32;
  const Graph& f32_graph;
  const SwitchedGraph& switched;
  const Samples& samples;
  const Running& running;
};

/// The outputs of the switched graph beside those of the f32 model.
class NoisyOutputs {
 public:
  explicit NoisyOutputs(const NoisyModels& models);

  /// Fills what the report says of outputs: their drift, the noise with all switches on and with all of them
  /// off, and whether layers can have shares of it.
  void measure(NoiseReport& report);
  struct Noise {
    double energy = 0;  ///< sum of the noise over the signal, in energies
    double worst = std::numeric_limits<double>::infinity();  ///< least signal to noise in decibel
  };
  /// The noise of all outputs in floats together.
  Noise noise(const Switched& on);
  /// A setting with all switches on, or all of them off.
  Switched all(bool on) const { return Switched(models.switched.switches.size(), on); }

  const NoisyModels models;

 private:
  std::vector<Drift> drifts(const Switched& on);

  std::vector<std::vector<Tensor>> exact_;  // by sample
  std::vector<std::size_t> counted_;        // outputs in floats that can be compared
  SwitchedRuns runs_;
};

}  // namespace lamina
