/// Layers whose operator a library of custom layers has. Attributes are text.
#include "extension/attribute_text.h"
#include "extension/custom_op.h"
#include "formats/ir/converters.h"
#include "formats/ir/text.h"

namespace lamina::ir {
namespace {

/// The text as the declared kind; types of other names than declared are for set() to refuse.
void set_attribute(LayerContext& c, CustomOp& op, const std::string& name, std::string_view text) {
  const auto& declared = op.declared().attributes;
  const auto it =
      std::find_if(declared.begin(), declared.end(), [&](const auto& a) { return a.name == name; });
  if (it == declared.end()) return op.set(name, std::string(text));
  const auto value = attribute_of_text(it->kind, it->kind == LAMINA_STRING ? text : trim(text));
  c.require(value.has_value(), "{}=\"{}\", wanted {}", name, text.substr(0, 80), name_of_kind(it->kind));
  op.set(name, *value);
}

}  // namespace

bool convert_custom(LayerContext& c) {
  const Layer& layer = c.layer();
  const auto& extensions = *c.reading().loaded.extensions;
  if (extensions.empty() || layer.version.empty()) return false;
  auto operation = extensions.find(layer.version, layer.type);
  if (!operation) return false;
  auto op = std::make_unique<CustomOp>(std::move(operation));
  try {
    for (const auto attribute : layer.data.attributes())
      set_attribute(c, *op, attribute.name(), attribute.value());
    op->require_attributes();
  } catch (const LocatedError&) {
    throw;
  } catch (const Error& e) {
    if (ends_the_work(e.code())) throw;
    c.fail("{}", e.what());
  }
  c.finish(Op(std::shared_ptr<const AnyOp>(std::move(op))), c.all_inputs());
  return true;
}

}  // namespace lamina::ir
