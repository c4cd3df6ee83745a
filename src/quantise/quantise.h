#pragma once
/// Post-training quantisation of a model: from f32 to 8 bits by samples of its inputs.
#include "formats/loaded.h"
#include "quantise/drift.h"
#include "quantise/search.h"

namespace lamina {

struct LayerReport {
  Layer layer;
  double sqnr = 0;          ///< of its result in the quantised model, in decibel
  double weights_sqnr = 0;  ///< of its weights
  Quantiser input = {};     ///< where it is quantised
};

struct OutputDrift {
  std::string name;
  Drift drift;
};

struct QuantisedModel {
  std::string onnx;  ///< the file's bytes, of an ONNX model
  Graph graph;       ///< with FakeQuantize, for other files
  std::vector<LayerReport> layers;
  std::vector<OutputDrift> outputs;
  Calibration calibration = Calibration::min_max;
  std::size_t equalised = 0;                    ///< pairs of layers
  std::size_t normalised = 0;                   ///< batch normalisations that became part of a layer
  std::size_t values = 0;                       ///< number of quantised values
  std::size_t evaluations = 0;                  ///< of quantised models, to decide
  std::vector<std::string> others_in_f32 = {};  ///< what is no layer: "name (operator): reason"
};

/// An ONNX model as an ONNX model: its file, with QuantizeLinear and DequantizeLinear. `source`: of the
/// model. Throws Error(unsupported) for a model that is quantised already, or has nothing that could be.
QuantisedModel quantise_onnx(const Model& model, const ModelSource& source, const QuantiseRequest& request);

/// A graph that is ready to be written, with FakeQuantize in it. `model`: what it was made of.
QuantisedModel quantise_graph(const Model& model, const Graph& graph, const QuantiseRequest& request);

}  // namespace lamina
