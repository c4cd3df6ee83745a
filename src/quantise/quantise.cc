#include "quantise/quantise.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "api/inside.h"
#include "base/error.h"
#include "formats/onnx/edit/upgrade.h"
#include "ops/quantization.h"
#include "ops/repeated_draws.h"
#include "quantise/comparing.h"
#include "quantise/prepare.h"
#include "quantise/write_onnx.h"

namespace lamina {
namespace {

void require_f32(const Graph& g) {
  for (const auto id : g.order()) {
    const auto& op = g.node(id).op;
    const auto* levels = op.as<FakeQuantize>();  // two are those of a binary layer
    if ((levels && levels->levels > 2) || op.is<Quantize>() || op.is<Dequantize>() ||
        op.is<DynamicQuantize>())
      fail(ErrorCode::unsupported, "the model is quantised already: node {} is a {}", g.label(id), op.name());
  }
}

/// Steps of QuantizeLinear have scales of f16 from opset 19 on only.
void require_wide_enough(const Graph& g, const std::vector<Layer>& layers) {
  std::size_t halves = 0, others = 0;  // those in bodies are none of this graph
  for (const auto& l : layers)
    if (l.node.valid()) ++(g.type(g.node(l.node).inputs[0]).element == ElementType::f16 ? halves : others);
  if (halves > 0 && others == 0)
    fail(ErrorCode::unsupported,
         "nothing to quantise: the model computes in f16; as OpenVINO IR (FILE.xml) it is quantised");
}

/// The graph of a file that is to be written, read as the model was.
Graph read_again(const LoadedModel& model, std::string bytes) {
  const auto text = std::make_shared<const std::string>(std::move(bytes));
  const MemorySource source(
      MappedFile::in_memory("the quantised model", std::as_bytes(std::span(*text)), text), nullptr, {});
  ReadSettings settings;
  settings.settable = model.settable();
  settings.extensions = model.loaded().extensions;
  auto loaded = read_onnx(source, settings);
  if (!loaded.unsupported.empty())
    fail(ErrorCode::unsupported, "opset {} has no {}, which the model has", onnx::kQuantisingOpset,
         loaded.unsupported[0].type);
  return std::move(loaded.graph);
}

FoundScheme found_for(const Model& model, const Graph& graph, const std::vector<Layer>& layers,
                      const QuantiseRequest& request, const Quantising& quantised, QuantisedModel& out) {
  require_layers(layers);
  auto found = find_scheme(model, graph, layers, request, quantised);
  out.calibration = found.calibration;
  out.equalised = found.equalised;
  out.evaluations = found.evaluations;
  out.values = found.scheme.places.groups.size();
  out.others_in_f32 = found.scheme.others_in_f32;
  return found;
}

double weights_sqnr(const Tensor& exact, const QuantisedWeights& q) {
  Drift drift;
  drift.add(exact, q.dequantised());
  return drift.sqnr();
}

/// `result`: the quantised model; its values have the names of those of `graph`.
void measure_layers(const Model& model, const Graph& graph, const Graph& result, const Scheme& scheme,
                    const QuantiseRequest& r, QuantisedModel& out) {
  Observed exact{model, graph, {}}, other{model, result, {}};
  std::vector<Drift> drifts;
  std::vector<std::size_t> places;
  for (const auto& layer : scheme.layers) {
    if (!layer.node.valid()) {
      out.layers.push_back({.layer = layer, .sqnr = std::numeric_limits<double>::quiet_NaN()});
      continue;
    }
    const auto v = graph.node(layer.node).outputs[0];
    const auto same = result.find_value(graph.value(v).name);
    LayerReport report{.layer = layer};
    if (const auto q = scheme.weights.find(layer.node); q != scheme.weights.end()) {
      report.weights_sqnr = weights_sqnr(*graph.constant(graph.node(layer.node).inputs[1]), q->second);
      report.input = scheme.of(graph.node(layer.node).inputs[0]);
    }
    if (same.valid() && result.value(same).kind == ValueKind::output_of_node) {
      exact.values.push_back(v);
      other.values.push_back(same);
      places.push_back(out.layers.size());
    }
    out.layers.push_back(std::move(report));
  }
  drifts.resize(places.size());
  observe_both(exact, other, r.held_out, r.running, "measuring layers",
               [&](std::size_t i, const Tensor& a, const Tensor& b) { drifts[i].add(a, b); });
  for (std::size_t i = 0; i < places.size(); ++i) out.layers[places[i]].sqnr = drifts[i].sqnr();
}

void measure_outputs(const Model& model, const Graph& graph, const Graph& result, const QuantiseRequest& r,
                     QuantisedModel& out) {
  const auto drifts =
      Comparing(model, graph, r.held_out, r.running).with(result, r.held_out.count, r.running);
  for (std::size_t i = 0; i < drifts.size(); ++i) out.outputs.push_back({graph.results()[i].name, drifts[i]});
}

}  // namespace

QuantisedModel quantise_onnx(const Model& model, const ModelSource& source, const QuantiseRequest& request) {
  const RepeatedDraws repeated;  // differences are those of the levels
  Inside::of(model).require_supported();
  QuantisedModel out;
  const Graph& original = Inside::of(model).loaded().graph;
  require_f32(original);
  Graph read = original;
  fold_constants(read);
  const OnnxFile file(source, read);
  Graph g = read;
  const auto absorbed = fold_batch_normalisation(g, [&](const Absorbed& a) { return file.can_absorb(a); });
  out.normalised = absorbed.size();
  auto r = request;
  r.scheme.no_new_bias_of_products = true;
  r.scheme.fixed = file.fixed_sums(read);
  auto layers = layers_of(g, r.scheme.choice);
  file.require_nodes(read, layers);
  require_wide_enough(g, layers);
  const auto bytes_for = [&](const Graph& graph, const Scheme& scheme) {
    return file.quantised(read, graph, absorbed, scheme);
  };
  const auto found = found_for(
      model, g, layers, r,
      [&](const Graph& graph, const Scheme& s) { return read_again(Inside::of(model), bytes_for(graph, s)); },
      out);
  out.onnx = bytes_for(found.graph, found.scheme);
  const auto result = read_again(Inside::of(model), out.onnx);
  measure_outputs(model, original, result, r, out);
  measure_layers(model, found.graph, result, found.scheme, r, out);
  return out;
}

QuantisedModel quantise_graph(const Model& model, const Graph& graph, const QuantiseRequest& r) {
  const RepeatedDraws repeated;  // differences are those of the levels
  QuantisedModel out;
  require_f32(graph);
  const auto found = found_for(model, graph, layers_of(graph, r.scheme.choice), r, quantised_graph, out);
  out.graph = quantised_graph(found.graph, found.scheme);
  measure_outputs(model, graph, out.graph, r, out);
  measure_layers(model, found.graph, out.graph, found.scheme, r, out);
  return out;
}

}  // namespace lamina
