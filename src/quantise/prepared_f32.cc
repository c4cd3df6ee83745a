#include "quantise/prepared_f32.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "graph/subgraph.h"
#include "ops/normalization.h"
#include "ops/quantization.h"
#include "quantise/prepare.h"

namespace lamina {
namespace {

/// The place among `own` of each of `wanted`; empty where the names are not the same, each once.
std::vector<std::size_t> places_of(const std::vector<std::string>& wanted,
                                   const std::vector<std::string>& own) {
  std::map<std::string, std::size_t> by_name;
  for (std::size_t i = 0; i < own.size(); ++i) by_name.emplace(own[i], i);
  std::set<std::size_t> found;
  std::vector<std::size_t> out;
  for (const auto& name : wanted) {
    const auto it = by_name.find(name);
    if (it == by_name.end() || !found.insert(it->second).second) return {};
    out.push_back(it->second);
  }
  return out.size() == own.size() ? out : std::vector<std::size_t>{};
}

std::vector<std::size_t> as_they_are(std::size_t count) {
  std::vector<std::size_t> out(count);
  std::iota(out.begin(), out.end(), 0u);
  return out;
}

std::vector<std::string> names_of_inputs(const Graph& g) {
  std::vector<std::string> out;
  for (const auto v : g.inputs()) out.push_back(g.value(v).name);
  return out;
}

std::vector<std::string> names_of_results(const Graph& g) {
  std::vector<std::string> out;
  for (const auto& result : g.results()) out.push_back(result.name);
  return out;
}

/// Files list inputs and outputs in any order: where both have the same names they are brought in that of
/// `other`.
Graph in_order_of(const Graph& other, const Graph& g) {
  const auto inputs_as_they_are = as_they_are(g.inputs().size());
  const auto results_as_they_are = as_they_are(g.results().size());
  auto inputs = places_of(names_of_inputs(other), names_of_inputs(g));
  auto results = places_of(names_of_results(other), names_of_results(g));
  if (inputs.empty()) inputs = inputs_as_they_are;
  if (results.empty()) results = results_as_they_are;
  if (inputs == inputs_as_they_are && results == results_as_they_are) return g;
  Subgraph copy(g);
  for (const auto i : inputs) copy.add_input(g.inputs()[i]);
  for (const auto id : g.order()) copy.add_node(id);
  for (const auto r : results) copy.add_result(g.results()[r].name, g.results()[r].value);
  return std::move(copy.graph);
}

}  // namespace

Graph prepared_f32(const Graph& f32, const Graph& quantised) {
  std::set<std::string> normalised;  // names of what batch normalisations read, before it is rounded, too
  for (const auto id : quantised.order()) {
    if (!quantised.node(id).op.is<BatchNormInference>()) continue;
    for (auto v = quantised.node(id).inputs[0]; v.valid();) {
      normalised.insert(quantised.value(v).name);
      const auto maker = quantised.producer(v);
      if (!maker.valid()) break;
      const Node& n = quantised.node(maker);
      const bool rounds = n.op.is<Quantize>() || n.op.is<Dequantize>() || n.op.is<FakeQuantize>();
      v = rounds ? n.inputs[0] : ValueId{};
    }
  }
  Graph g = in_order_of(quantised, f32);
  fold_constants(g);
  fold_batch_normalisation(
      g, [&](const Absorbed& absorbed) { return !normalised.contains(absorbed.layer_output); });
  return g;
}

}  // namespace lamina
