/// No real model runs a hot operator on a reference kernel, ours or oneDNN's.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "api/inside.h"
#include "base/cpu.h"
#include "base/npz.h"
#include "lamina/lamina.h"
#include "ops/convolution.h"

namespace lamina {
namespace {

namespace fs = std::filesystem;

/// Operators that look at single values, make shapes or run bodies: scalar code is what they need.
bool cold(const std::string& op) {
  static const std::set<std::string> names{"DetectionOutput",
                                           "ExperimentalDetectronDetectionOutput",
                                           "If",
                                           "Loop",
                                           "NonMaxSuppression",
                                           "NonZero",
                                           "PriorBox",
                                           "PriorBoxClustered",
                                           "Proposal",
                                           "RandomUniform",
                                           "Range",
                                           "ShapeOf",
                                           "TensorIterator",
                                           "TopK",
                                           "Unique"};
  return names.contains(op);
}

/// Integers of quantised and bits of binary models wait for their own kernels.
bool quantised(const Graph& g, const Node& n) {
  const auto narrow = [&](ValueId v) {
    const auto e = v.valid() ? g.type(v).element : ElementType::f32;
    return e == ElementType::i8 || e == ElementType::u8 || e == ElementType::u1;
  };
  return std::any_of(n.inputs.begin(), n.inputs.end(), narrow) ||
         std::any_of(n.outputs.begin(), n.outputs.end(), narrow);
}

std::vector<std::string> slow_steps(const fs::path& path) {
  const Model model(path.string());
  const CompiledModel compiled(model);
  auto request = compiled.create_request();
  const auto arrays = read_npz(fs::path(path).replace_extension(".npz").string());
  for (std::size_t i = 0; i < model.inputs().size(); ++i)
    for (const auto& [name, tensor] : arrays)
      if (name == model.inputs()[i].name || name == "in" + std::to_string(i)) request.set_input(i, tensor);
  request.run();
  std::vector<std::string> found;
  for (const auto& plan : Inside::runner_of(request).plans())
    for (const auto& step : plan->steps) {
      if (step.kind != PlanStep::Kind::kernel || step.label.find("ref") == std::string::npos) continue;
      const auto& node = plan->graph.node(step.node);
      // What oneDNN had for some of them with SSE4.1 alone is refused.
      if (effective_isa() == Isa::sse41 && node.op.is<ConvolutionBackpropData>()) continue;
      if (!cold(node.op.name()) && !quantised(plan->graph, node))
        found.push_back(fmt::format("{}: {} '{}' runs on {}", path.filename().string(), node.op.name(),
                                    step.name, step.label));
    }
  return found;
}

TEST(HotKernels, of_shared_models) {
  const fs::path shared = fs::path(LAMINA_SHARED) / "models";
  if (!fs::is_directory(shared)) GTEST_SKIP() << shared << " is not there";
  for (const auto& entry : fs::directory_iterator(shared / "onnx"))
    if (entry.path().extension() == ".onnx")
      for (const auto& line : slow_steps(entry.path())) ADD_FAILURE() << line;
  for (const auto& entry : fs::directory_iterator(shared / "ir")) {
    const auto name = entry.path().filename().string();
    const bool wanted = name.find(".v10.") != std::string::npos || name.find(".v11.") != std::string::npos;
    if (wanted && name.ends_with(".xml"))
      for (const auto& line : slow_steps(entry.path())) ADD_FAILURE() << line;
  }
}

}  // namespace
}  // namespace lamina
