#include "formats/onednn_graph/custom.h"

#include "extension/attribute_text.h"

namespace lamina::onednn_graph {
namespace {

/// An attribute's text as IR writes it: a list with commas.
struct Text {
  std::string operator()(const std::string& s) const { return s; }
  std::string operator()(bool b) const { return b ? "true" : "false"; }
  std::string operator()(std::int64_t i) const { return std::to_string(i); }
  std::string operator()(double f) const { return fmt::format("{}", f); }
  std::string operator()(const Ints& list) const { return fmt::format("{}", fmt::join(list, ",")); }
  std::string operator()(const Floats& list) const { return fmt::format("{}", fmt::join(list, ",")); }
};

}  // namespace

Values make_custom(const Call& c, std::shared_ptr<const DeclaredOperation> operation) {
  auto op = std::make_unique<CustomOp>(std::move(operation));
  for (const auto& declared : op->declared().attributes) {
    const auto it = c.op().attributes.find(declared.name);
    if (it == c.op().attributes.end()) continue;
    const auto text = std::visit(Text{}, it->second);
    const auto value = attribute_of_text(declared.kind, text);
    if (!value)
      c.fail("attribute \"{}\" is {}, wanted {}", declared.name, text.substr(0, 80),
             name_of_kind(declared.kind));
    op->set(declared.name, *value);
  }
  op->require_attributes();
  const auto& info = op->info();
  const auto wanted = static_cast<int>(c.op().outputs.size());
  if (info.outputs != kMany && wanted > info.outputs)
    c.fail("has {} outputs, wanted at most {}", wanted, info.outputs);
  const int outputs = info.outputs == kMany ? wanted : info.outputs;
  return c.add_all(Op(std::shared_ptr<const AnyOp>(std::move(op))), c.all(), outputs);
}

}  // namespace lamina::onednn_graph
