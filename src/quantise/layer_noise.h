#pragma once
/// Noise of a quantised model, layer by layer, against the f32 model that it was made of.
#include <string>
#include <utility>
#include <vector>

#include "lamina/model.h"
#include "quantise/drift.h"
#include "quantise/observe.h"

namespace lamina {

/// A layer of the f32 model for whose output the quantised model has a value. Noise is given as signal to
/// noise in decibel: infinite without noise, NaN if the two values cannot be compared.
struct LayerNoise {
  std::string name;       ///< in the f32 file; of the last layer where several are measured together
  std::string operators;  ///< "Conv+Relu": the types of all layers since the values before
  /// Further layers with weights in the measurement, because their own outputs have no counterpart.
  std::vector<std::string> with = {};
  double snr = 0;    ///< noise of its output, that of all layers before it included
  double own = 0;    ///< noise of its output against f32 on the same operands: weights and arithmetic alone
  double input = 0;  ///< noise of what it reads, by rounding to levels alone
  /// The noise of the model's outputs where this layer alone is quantised: 0 to 1, the sum of all is 1.
  double share = 0;
  bool has_weights = false;
};

/// In decibel: less noise than this is that of sums in another order.
inline constexpr double kExactSnr = 90;

struct OutputNoise {
  std::string name;
  Drift drift;  ///< of the quantised model from the f32 model
};

/// An input that holds NaN or infinities in some of the samples.
struct InputNotFinite {
  std::string name;
  std::size_t samples = 0;
};

/// Nodes of the f32 model which are best not quantised.
struct LeftOut {
  std::vector<std::string> nodes;  ///< the worst first; empty where leaving out gains nothing worth the while
  std::vector<std::string> layers;  ///< the nodes that have weights
  /// Some nodes are named after their first output: the file may have no name for them.
  bool has_unnamed = false;
  /// Worst signal to noise of an output where the nodes compute in f32. Other ranges, which a quantiser finds
  /// then, are not in it.
  double snr = 0;
};

struct NoiseReport {
  std::vector<LayerNoise> layers;  ///< the worst output first; without layers that are exact
  std::vector<OutputNoise> outputs;
  std::size_t samples = 0;
  std::vector<InputNotFinite> not_finite;  ///< what is measured with such inputs means little
  std::size_t weighted = 0;                ///< layers with weights
  std::size_t matched = 0;                 ///< layers with weights that have a measurement of their own
  std::size_t exact = 0;  ///< layers with weights that are not in `layers`, since they are not quantised
  double snr = 0;         ///< worst signal to noise of an output
  LeftOut left_out;
  /// Worst signal to noise of an output if everything that has a counterpart computes in f32: high, unless
  /// something could not be measured.
  double snr_of_rest = 0;
  std::size_t compared = 0;  ///< numbers in the outputs of all samples: with few of them noise is chance
  bool has_shares = false;   ///< some output in floats, of the same shape in both models, has noise
};

/// Compares on these samples, which fit the inputs of both models. Values are kept for a few layers at a
/// time. Throws Error(bad_input), which says what did not fit, if `quantised` was not made of `f32`.
NoiseReport layer_noise(const Model& quantised, const Model& f32, const Samples& samples,
                        const Running& running);

}  // namespace lamina
