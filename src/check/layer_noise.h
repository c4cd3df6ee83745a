#pragma once
/// The layers of a quantised model beside those of the f32 model that it was made of.
#include <functional>
#include <string>
#include <vector>

#include "check/stored.h"
#include "graph/graph.h"

namespace lamina::check {

/// The output of a layer of the f32 model for which the quantised model has a value.
struct LayerNoise {
  std::string name;       ///< of the layer; of the last one where several are measured together
  std::string operators;  ///< "Conv+Relu": the types of all layers since the last measured values
  std::string value;      ///< its output in the f32 model
  /// Further layers with weights that are part of the measurement, because their own outputs have no
  /// counterpart.
  std::vector<std::string> with = {};
  double snr = 0;  ///< signal to noise in decibel of the quantised model's value against the f32 model's
  /// The same where the f32 layer reads what the quantised model computed before: what the layer itself adds.
  double own_snr = 0;
  /// Its part of the noise of the outputs: 0 to 1, and the sum of all is 1. Each layer's own noise alone is
  /// added to its output in the f32 model, and what arrives at the outputs is measured.
  double share = 0;
  bool has_weights = false;
};

struct OutputNoise {
  std::string name;
  Agreement agreement;  ///< of the quantised model's with the f32 model's
};

struct NoiseReport {
  std::vector<LayerNoise> layers;  ///< worst signal to noise first
  std::vector<OutputNoise> outputs;
  /// Layers with weights that have no counterpart and the layer with which each is measured, or "".
  std::vector<std::pair<std::string, std::string>> unmatched;
  /// Layers that together cause half of the outputs' noise or more, the worst first; none where there is
  /// nothing to gain.
  std::vector<std::string> leave_out;
  /// Their part of the outputs' noise.
  double leave_out_share = 0;
  /// Worst signal to noise of an output now, and as estimated without the noise of these.
  double snr = 0, snr_without = 0;
};

/// Compares on these inputs, which both graphs take in the same order. Values are the same where they have
/// the same name; a value that is stored in 8 bits is found by the names that quantisers give it
/// ("NAME_quantized", "NAME_QuantizeLinear_Output", ...), and read as its numbers. Throws Error(bad_input)
/// where inputs or outputs of the two do not fit each other.
NoiseReport layer_noise(const Graph& quantised, const Graph& f32, const std::vector<Tensor>& inputs,
                        const std::function<void(double)>& progress = {});

}  // namespace lamina::check
