/// Bodies of If, Loop and Scan, and what they read from around them.
#include <set>

#include "base/error.h"
#include "formats/onnx/importer.h"
#include "formats/onnx/sequence.h"

namespace lamina::onnx {

Captures Importer::captures(Scope& scope, const std::vector<const GraphProto*>& bodies) {
  Captures out;
  std::set<std::string_view> seen;
  for (const auto* body : bodies)
    for (auto name : orders_.free_names(*body)) {
      if (!seen.insert(name).second) continue;
      const auto value = lookup(scope, name);
      if (is_sequence(scope.graph, value)) throw NotSupported{"a body that reads a sequence"};
      if (value.valid() && !scope.graph.constant(value)) out.emplace_back(name, value);
    }
  return out;
}

Graph Importer::import_body(Scope& scope, const GraphProto& proto, const Captures& captured,
                            const BodyPlan& plan) {
  if (scope.depth >= kDeepest) fail(ErrorCode::bad_file, "bodies are nested more than {} deep", kDeepest);
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
    inner.values.emplace(name, body.add_input(std::string(name), scope.graph.type(value)));
  declare_initializers(inner, proto);
  import_nodes(inner, proto.nodes);
  const auto outputs = results(inner, proto);
  refuse_sequences(body, outputs);
  plan.end(body, outputs);
  erase_sequences(body);
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
