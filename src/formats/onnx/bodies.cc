/// Bodies of If, Loop and Scan, and what they read from around them.
#include <set>

#include "base/error.h"
#include "formats/onnx/importer.h"
#include "formats/onnx/sequence.h"
#include "ops/shaping.h"

namespace lamina::onnx {

Captures Importer::captures(Scope& scope, const std::vector<const GraphProto*>& bodies) {
  Captures out;
  std::set<std::string_view> seen;
  for (const auto* body : bodies)
    for (auto name : orders_.free_names(*body)) {
      if (!seen.insert(name).second) continue;
      const auto value = lookup(scope, name);
      if (value.valid() && !scope.graph.constant(value)) out.emplace_back(name, value);
    }
  return out;
}

Values captured_values(const Graph& graph, const Captures& captured) {
  Values out;
  for (const auto& [name, value] : captured) {
    const auto held = held_values(graph, value);
    out.insert(out.end(), held.begin(), held.end());
  }
  return out;
}

void add_results(Graph& body, const Values& values) {
  for (auto v : values) body.add_result(body.value(v).name, v);
}

void add_stacked(Graph& body, const Values& stacked, Ints& axes) {
  for (std::size_t i = 0; i < stacked.size(); ++i) {
    const auto axis = body.add_constant(Tensor::of<std::int64_t>({1}, Ints{axes[i]}));
    const auto v = body.add(Unsqueeze{}, {stacked[i], axis});
    const auto& shape = body.type(v).shape;
    if (axes[i] < 0 && !shape.ranked())
      throw NotSupported{"a scan output of unknown rank with an axis counted from the end"};
    if (axes[i] < 0) axes[i] += static_cast<std::int64_t>(shape.rank());
    body.add_result(body.value(v).name, v);
  }
}

std::map<std::string_view, int> Importer::reads(const GraphProto& graph) {
  std::map<std::string_view, int> out;
  for (const auto& n : graph.nodes) {
    for (auto name : n.inputs) ++out[name];
    for (const auto& a : n.attributes)
      if (a.g)
        for (auto name : orders_.free_names(*a.g)) ++out[name];
  }
  for (const auto& v : graph.outputs) ++out[v.name];
  return out;
}

Importer::Listed Importer::listed() const {
  return {loaded_.unsupported, unsupported_, loaded_.graph.sources.size()};
}

void Importer::take_back(Listed before) {
  loaded_.unsupported = std::move(before.unsupported);
  unsupported_ = std::move(before.index);
  loaded_.graph.sources.resize(before.sources);
}

Graph Importer::import_body(Scope& scope, const GraphProto& proto, const Captures& captured,
                            const BodyPlan& plan) {
  if (scope.depth >= kDeepest) fail(ErrorCode::bad_file, "bodies are nested more than {} deep", kDeepest);
  if ((body_budget_ -= std::ssize(proto.nodes)) < 0)
    fail(ErrorCode::bad_file, "bodies in each other have too many nodes");
  Graph body;
  body.name = std::string(proto.name);
  Scope inner{body, &scope, scope.frame, scope.depth + 1, {}, {}, {}};
  const auto own = plan.begin(body);
  if (proto.inputs.size() != own.size())
    fail(ErrorCode::bad_file, "the body \"{}\" has {} inputs, wanted {}", proto.name, proto.inputs.size(),
         own.size());
  for (std::size_t i = 0; i < own.size(); ++i)
    if (!inner.values.emplace(proto.inputs[i].name, own[i]).second)
      fail(ErrorCode::bad_file, "two inputs of a body have the name \"{}\"", proto.inputs[i].name);
  for (const auto& [name, value] : captured)  // a name of the body's own comes first
    inner.values.emplace(name, bring_in(body, scope.graph, value, name));
  declare_initializers(inner, proto);
  import_nodes(inner, proto.nodes);
  const auto outputs = results(inner, proto);
  plan.end(body, outputs);
  if (!body.results().empty()) erase_sequences(body);
  return body;
}

Values Importer::inline_body(Scope& scope, const GraphProto& proto, const Values& own) {
  if (scope.depth >= kDeepest) fail(ErrorCode::bad_file, "bodies are nested more than {} deep", kDeepest);
  Scope inner{scope.graph, &scope, scope.frame, scope.depth + 1, {}, {}, {}};
  for (std::size_t i = 0; i < own.size(); ++i) inner.values.emplace(proto.inputs[i].name, own[i]);
  declare_initializers(inner, proto);
  import_nodes(inner, proto.nodes);
  return results(inner, proto);
}

}  // namespace lamina::onnx
