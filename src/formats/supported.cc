#include "formats/supported.h"

#include <algorithm>

#include "formats/caffe/call.h"
#include "formats/ir/converters.h"
#include "formats/ir/legacy/lowering.h"
#include "formats/onednn_graph/call.h"
#include "formats/onnx/call.h"
#include "formats/tensorflow/call.h"

namespace lamina {

std::vector<std::string> supported_onnx() {
  std::vector<std::string> out;
  for (const auto& [domain, type] : onnx::converters().names())
    out.push_back(domain.empty() ? type : domain + ":" + type);
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
    const bool da = a.find(':') != std::string::npos, db = b.find(':') != std::string::npos;
    return da != db ? db : a < b;
  });
  return out;
}

std::vector<std::string> supported_caffe() { return caffe::converters().names(); }

std::vector<SupportedLayer> supported_ir() {
  std::vector<SupportedLayer> out;
  for (const auto& [key, layer] : ir::layer_types()) out.push_back({layer.name, layer.opset});
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.type < b.type; });
  return out;
}

std::vector<std::string> supported_legacy_ir() {
  auto out = ir::legacy::lowerings().names();
  const auto more = ir::ageless_converters().names();
  out.insert(out.end(), more.begin(), more.end());
  out.insert(out.end(), {"Const", "Input"});
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::string> supported_tensorflow() {
  auto out = tensorflow::converters().names();
  // What is no operator of its own in the graph.
  for (const char* name :
       {"Assert", "Const", "Enter", "Exit", "If", "LoopCond", "Merge", "NextIteration", "NoOp",
        "PartitionedCall", "Placeholder", "PlaceholderV2", "PlaceholderWithDefault",
        "StatefulPartitionedCall", "StatelessIf", "StatelessWhile", "Switch", "While"})
    out.emplace_back(name);
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::string> supported_onednn_graph() {
  auto out = onednn_graph::converters().names();
  out.emplace_back("End");  // marks a result
  std::sort(out.begin(), out.end());
  return out;
}

int newest_ir_opset() { return ir::kNewestOpset; }

}  // namespace lamina
