#pragma once
/// Which layers' noise reaches the outputs, and which layers are best not quantised.
#include <limits>

#include "quantise/layer_noise.h"
#include "quantise/switched.h"

namespace lamina {

/// Name and type in the file.
Source layer_source(const Graph& graph, NodeId node);

/// A row of the report with the switches by which its layer is quantised.
struct NoiseRow {
  LayerNoise noise;
  std::vector<std::size_t> own;        ///< of the layer's values, and of roundings that no layer reads
  std::vector<std::size_t> roundings;  ///< of what it reads
};

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

  /// The outputs, their noise now, what is left of it in f32, and whether there are shares.
  void measure(NoiseReport& report);
  struct Noise {
    double energy = 0;  ///< sum of the noise over the signal, in energies
    double worst = std::numeric_limits<double>::infinity();  ///< least signal to noise in decibel
  };
  /// Of all outputs in floats.
  Noise noise(const Switched& on);
  Switched all(bool on) const { return Switched(models.switched.switches.size(), on); }

  const NoisyModels models;

 private:
  std::vector<Drift> drifts(const Switched& on);

  std::vector<std::vector<Tensor>> exact_;  // by sample
  std::vector<std::size_t> counted_;        // outputs in floats that can be compared
  SwitchedRuns runs_;
};

/// Fills the rows' shares, and what of the report concerns the nodes to leave out.
void choose_left_out(NoisyOutputs& outputs, std::vector<NoiseRow>& rows, NoiseReport& report);

}  // namespace lamina
