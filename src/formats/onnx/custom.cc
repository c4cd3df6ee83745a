/// Nodes whose operator a library of custom layers has.
#include "base/error.h"
#include "extension/custom_op.h"
#include "formats/onnx/importer.h"

namespace lamina::onnx {
namespace {

Strings texts(const Names& names) { return {names.begin(), names.end()}; }

Attribute value_of(Importer& importer, const AttributeProto& a) {
  switch (a.type) {
    case AttributeProto::float_:
      return static_cast<double>(a.f);
    case AttributeProto::int_:
      return a.i;
    case AttributeProto::string:
      return std::string(a.s);
    case AttributeProto::floats_:
      return Floats(a.floats.begin(), a.floats.end());
    case AttributeProto::ints_:
      return a.ints;
    case AttributeProto::strings_:
      return texts(a.strings);
    case AttributeProto::tensor:
      if (a.t) return importer.read(*a.t).to_aligned();
      [[fallthrough]];
    default:
      fail(ErrorCode::bad_file, "attribute \"{}\" is of a kind that custom layers cannot have", a.name);
  }
}

}  // namespace

Values Importer::make_custom(Scope& scope, const NodeProto& node,
                             std::shared_ptr<const DeclaredOperation> operation) {
  auto op = std::make_unique<CustomOp>(std::move(operation));
  for (const auto& a : node.attributes)
    if (const auto* value = resolve(scope, a)) op->set(a.name, value_of(*this, *value));
  op->require_attributes();
  Values inputs;
  for (auto name : node.inputs) inputs.push_back(name.empty() ? ValueId{} : lookup(scope, name));
  while (!inputs.empty() && !inputs.back().valid()) inputs.pop_back();
  const auto& info = op->info();
  const auto wanted = static_cast<int>(node.outputs.size());
  if (info.outputs != kMany && wanted > info.outputs)
    fail(ErrorCode::bad_file, "has {} outputs, wanted at most {}", wanted, info.outputs);
  const int outputs = info.outputs == kMany ? wanted : info.outputs;
  const auto id =
      scope.graph.add_node(Op(std::shared_ptr<const AnyOp>(std::move(op))), std::move(inputs), {}, outputs);
  return scope.graph.node(id).outputs;
}

}  // namespace lamina::onnx
