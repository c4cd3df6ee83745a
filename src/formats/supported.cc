#include "formats/supported.h"

#include <algorithm>
#include <set>

#include "formats/ir/converters.h"
#include "formats/onnx/call.h"
#include "ops/operators.h"

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

std::vector<std::string> supported_ir() {
  std::set<std::string> out;
  // Own operators that no IR has a word for.
  const std::set<std::string> ours{"DynamicQuantize", "Quantize",           "Dequantize",
                                   "Opaque",          "LayerNormalization", "RMSNormalization"};
  for (const auto& name : operators().names())
    if (!ours.contains(name)) out.insert(name);
  for (const char* name :
       {"Parameter", "Result", "Const", "GroupConvolution", "GroupConvolutionBackpropData", "TensorIterator"})
    out.insert(name);
  return {out.begin(), out.end()};
}

}  // namespace lamina
