/// Nodes whose operator a library of custom layers has, in the domain "tensorflow".
#include <algorithm>

#include "extension/custom_op.h"
#include "formats/tensorflow/importer.h"
#include "formats/tensorflow/tensors.h"

namespace lamina::tensorflow {
namespace {

Attribute value_of_list(const ListValue& list) {
  if (!list.texts.empty()) return Strings(list.texts.begin(), list.texts.end());
  if (!list.numbers.empty()) return Floats(list.numbers.begin(), list.numbers.end());
  return list.integers;
}

}  // namespace

Attribute Importer::attribute_of(std::string_view name, const AttrValue& a) {
  switch (a.kind) {
    case AttrValue::text:
      return std::string(a.bytes);
    case AttrValue::integer:
    case AttrValue::type:
      return a.i;
    case AttrValue::flag:
      return a.i != 0;
    case AttrValue::number:
      return a.f;
    case AttrValue::list:
      return value_of_list(parse_list(a.bytes));
    case AttrValue::tensor:
      if (auto read = read_tensor(parse_tensor(a.bytes), owner_, constants_budget); !read.repeated)
        return read.data.to_aligned();
      [[fallthrough]];
    default:
      fail(ErrorCode::bad_file, "attribute \"{}\" is of a kind that custom layers cannot have", name);
  }
}

/// TensorFlow gives its nodes attributes of its own (T, _output_shapes): those that the operation does not
/// have are not for it.
Values Importer::make_custom(std::uint32_t n, const std::shared_ptr<const DeclaredOperation>& operation,
                             Values inputs) {
  const auto& wanted = operation->attributes;
  auto op = std::make_unique<CustomOp>(operation);
  for (const auto& [name, message] : def_.nodes[n].attributes)
    if (std::any_of(wanted.begin(), wanted.end(), [&](const auto& a) { return a.name == name; }))
      op->set(name, attribute_of(name, parse_attribute(message)));
  op->require_attributes();
  const auto& info = op->info();
  const auto read = static_cast<int>(highest_[n]) + 1;
  if (info.outputs != kMany && read > info.outputs)
    fail(ErrorCode::bad_file, "has {} outputs that are read, wanted at most {}", read, info.outputs);
  const int outputs = info.outputs == kMany ? read : info.outputs;
  auto& graph = this->graph();
  return graph
      .node(graph.add_node(Op(std::shared_ptr<const AnyOp>(std::move(op))), std::move(inputs), {}, outputs))
      .outputs;
}

}  // namespace lamina::tensorflow
