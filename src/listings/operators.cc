/// The operators and optimisations of this build, and of libraries of custom layers.
#include <algorithm>

#include "api/at_work.h"
#include "base/guard.h"
#include "base/json_text.h"
#include "formats/supported.h"
#include "kernels/kernel.h"
#include "lamina/listings.h"
#include "listings/extension_list.h"
#include "ops/operators.h"
#include "rules/extension_rules.h"
#include "rules/rules.h"

namespace lamina {
namespace {

/// Kernels other than the reference that take the operator.
std::vector<std::string> kernel_names(const Op& op) {
  std::vector<std::string> out;
  const auto all = kernels();
  for (const auto& k : *all) {
    const auto whose = k.name.substr(0, k.name.find('.'));
    if (whose != "reference" && k.takes(op) && std::find(out.begin(), out.end(), whose) == out.end())
      out.push_back(whose);
  }
  return out;
}

nlohmann::json operators_json() {
  auto out = nlohmann::json::array();
  for (const auto& name : operators().names()) {
    const auto* prototype = operators().find(name);
    const Op op{std::shared_ptr<const AnyOp>(prototype->copy())};
    out.push_back({{"name", name},
                   {"doc", prototype->info().doc},
                   {"kernels", fmt::format("{}", fmt::join(kernel_names(op), ", "))}});
  }
  return out;
}

nlohmann::json ir_json() {
  auto out = nlohmann::json::array();
  for (const auto& layer : supported_ir()) out.push_back({{"type", layer.type}, {"opset", layer.opset}});
  return out;
}

}  // namespace

std::string list_operators(const std::vector<std::string>& extensions) {
  return guarded("list_operators", [&] {
    const AtWork here;
    return json_text(nlohmann::json{{"operators", operators_json()},
                                    {"onnx", supported_onnx()},
                                    {"ir", ir_json()},
                                    {"newest_opset", newest_ir_opset()},
                                    {"ir_2_to_7", supported_legacy_ir()},
                                    {"caffe", supported_caffe()},
                                    {"tensorflow", supported_tensorflow()},
                                    {"onednn_graph", supported_onednn_graph()},
                                    {"extensions", extensions_json(extensions)}});
  });
}

std::string list_rules(const std::vector<std::string>& extensions) {
  return guarded("list_rules", [&] {
    const AtWork here;
    auto list = nlohmann::json::array();
    const auto more = extension_rules(std::make_shared<const ExtensionSet>(extensions));
    for (const auto* rules : {&all_rules(), more.get()}) {
      if (!rules) continue;
      for (const auto& rule : *rules)
        list.push_back({{"name", rule.name}, {"set", name_of(rule.set)}, {"doc", rule.doc}});
    }
    return json_text(nlohmann::json{{"rules", list}});
  });
}

}  // namespace lamina
