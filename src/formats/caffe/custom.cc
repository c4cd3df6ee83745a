#include "formats/caffe/custom.h"

#include <map>

#include "extension/attribute_text.h"

namespace lamina::caffe {
namespace {

/// Values of one name as IR writes them: a list with commas.
std::map<std::string, std::string> texts_of(const LayerDef& layer) {
  std::map<std::string, std::string> out;
  for (const auto param : layer.message) {
    if (!param.is_message() || !param.name().ends_with("_param")) continue;
    for (const auto field : param.message()) {
      if (field.is_message()) continue;
      auto& text = out[std::string(field.name())];
      text +=
          (text.empty() ? "" : ",") + std::string(field.is_negative() ? "-" : "") + std::string(field.text());
    }
  }
  return out;
}

}  // namespace

Values make_custom(const Call& c, std::shared_ptr<const DeclaredOperation> operation) {
  auto op = std::make_unique<CustomOp>(std::move(operation));
  const auto texts = texts_of(c.layer());
  for (const auto& declared : op->declared().attributes) {
    const auto it = texts.find(declared.name);
    if (it == texts.end()) continue;
    const auto value = attribute_of_text(declared.kind, it->second);
    if (!value)
      c.fail("{} is {}, wanted {}", it->first, it->second.substr(0, 80), name_of_kind(declared.kind));
    op->set(it->first, *value);
  }
  op->require_attributes();
  auto inputs = c.all();
  for (std::size_t i = 0; i < c.blobs(); ++i) inputs.push_back(c.constant(c.tensor(i, c.blob(i).dims)));
  const auto& info = op->info();
  const auto wanted = static_cast<int>(c.outputs());
  if (info.outputs != kMany && wanted > info.outputs)
    c.fail("has {} tops, wanted at most {}", wanted, info.outputs);
  const int outputs = info.outputs == kMany ? wanted : info.outputs;
  return c.add_all(Op(std::shared_ptr<const AnyOp>(std::move(op))), std::move(inputs), outputs);
}

}  // namespace lamina::caffe
