#include "quantise/quantise.h"

#include <algorithm>
#include <cmath>

#include "api/inside.h"
#include "base/error.h"
#include "base/progress.h"
#include "ops/quantization.h"
#include "quantise/prepare.h"
#include "quantise/write_onnx.h"

namespace lamina {
namespace {

void require_f32(const Graph& g) {
  for (const auto id : g.order()) {
    const auto& op = g.node(id).op;
    if (op.is<FakeQuantize>() || op.is<Quantize>() || op.is<Dequantize>() || op.is<DynamicQuantize>())
      fail(ErrorCode::unsupported, "the model is quantised already: node {} is a {}", g.label(id), op.name());
  }
}

FoundScheme found_for(const Model& model, const Graph& graph, const std::vector<Layer>& layers,
                      const QuantiseRequest& request, QuantisedModel& out) {
  require_layers(layers);
  auto found = find_scheme(model, graph, layers, request);
  out.calibration = found.calibration;
  out.equalised = found.equalised;
  out.evaluations = found.evaluations;
  out.values = found.scheme.places.groups.size();
  return found;
}

double weights_sqnr(const Tensor& exact, const QuantisedWeights& q) {
  Drift drift;
  drift.add(exact, q.dequantised());
  return drift.sqnr();
}

/// `result`: the quantised model; its values have the names of those of `graph`.
void measure_layers(const Model& model, const Graph& graph, const Model& result_model, const Graph& result,
                    const Scheme& scheme, const QuantiseRequest& r, QuantisedModel& out) {
  Observed exact{model, graph, {}}, other{result_model, result, {}};
  std::vector<Drift> drifts;
  std::vector<std::size_t> places;
  for (const auto& layer : scheme.layers) {
    const auto v = graph.node(layer.node).outputs[0];
    const auto same = result.find_value(graph.value(v).name);
    LayerOutcome outcome{.layer = layer};
    if (const auto q = scheme.weights.find(layer.node); q != scheme.weights.end()) {
      outcome.weights_sqnr = weights_sqnr(*graph.constant(graph.node(layer.node).inputs[1]), q->second);
      outcome.input = scheme.of(graph.node(layer.node).inputs[0]);
    }
    if (same.valid() && result.value(same).kind == ValueKind::output_of_node) {
      exact.values.push_back(v);
      other.values.push_back(same);
      places.push_back(out.layers.size());
    }
    out.layers.push_back(std::move(outcome));
  }
  drifts.resize(places.size());
  observe_both(exact, other, r.held_out, r.running, "measuring layers",
               [&](std::size_t i, const Tensor& a, const Tensor& b) { drifts[i].add(a, b); });
  for (std::size_t i = 0; i < places.size(); ++i) out.layers[places[i]].sqnr = drifts[i].sqnr();
}

void measure_outputs(const Model& model, const Graph& graph, const Model& result_model, const Graph& result,
                     const QuantiseRequest& r, QuantisedModel& out) {
  Observed exact{model, graph, {}}, other{result_model, result, {}};
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < graph.results().size(); ++i) {
    out.outputs.push_back({graph.results()[i].name, {}});
    if (graph.constant(graph.results()[i].value)) continue;
    exact.values.push_back(graph.results()[i].value);
    other.values.push_back(result.results().at(i).value);
    places.push_back(i);
  }
  observe_both(
      exact, other, r.held_out, r.running, "measuring outputs",
      [&](std::size_t i, const Tensor& a, const Tensor& b) { out.outputs[places[i]].drift.add(a, b); });
}

}  // namespace

QuantisedModel quantise_onnx(const Model& model, const ModelSource& source, const QuantiseRequest& request) {
  Inside::of(model).require_supported();
  QuantisedModel out;
  const Graph& original = Inside::of(model).loaded().graph;
  require_f32(original);
  Graph read = original;
  fold_constants(read);
  const OnnxFile file(source, read);
  Graph g = read;
  const auto absorbed =
      fold_batch_normalisation(g, [&](const std::string& name) { return file.makes(name); });
  out.normalised = absorbed.size();
  auto r = request;
  r.scheme.no_new_bias_of_products = true;
  auto layers = layers_of(g, r.scheme.choice);
  file.require_nodes(read, layers);
  const auto found = found_for(model, g, layers, r, out);
  out.onnx = file.quantised(read, found.graph, absorbed, found.scheme);
  const auto result =
      Model::from_memory({.model = std::as_bytes(std::span(out.onnx)), .name = "the quantised model"});
  const auto& result_graph = Inside::of(result).loaded().graph;
  measure_outputs(model, original, result, result_graph, r, out);
  measure_layers(model, found.graph, result, result_graph, found.scheme, r, out);
  return out;
}

QuantisedModel quantise_graph(const Model& model, const Graph& graph, const QuantiseRequest& r) {
  QuantisedModel out;
  require_f32(graph);
  const auto found = found_for(model, graph, layers_of(graph, r.scheme.choice), r, out);
  out.graph = quantised_graph(found.graph, found.scheme);
  measure_outputs(model, graph, model, out.graph, r, out);
  measure_layers(model, found.graph, model, out.graph, found.scheme, r, out);
  return out;
}

}  // namespace lamina
