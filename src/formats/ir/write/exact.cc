#include <array>

#include "formats/ir/write/net_writer.h"

namespace lamina::ir {
namespace {

/// Inputs from which on an operator reads sizes, places, bounds or thresholds.
struct ExactInputs {
  std::string_view op;
  std::size_t first, last;
};
constexpr std::array kExact = {
    ExactInputs{"Reshape", 1, 1},
    ExactInputs{"Interpolate", 1, 3},
    ExactInputs{"Broadcast", 1, 2},
    ExactInputs{"Tile", 1, 1},
    ExactInputs{"Slice", 1, 4},
    ExactInputs{"SliceScatter", 2, 5},
    ExactInputs{"StridedSlice", 1, 3},
    ExactInputs{"Pad", 1, 2},
    ExactInputs{"Range", 0, 2},
    ExactInputs{"Split", 1, 1},
    ExactInputs{"VariadicSplit", 1, 2},
    ExactInputs{"TopK", 1, 1},
    ExactInputs{"OneHot", 1, 1},
    ExactInputs{"Eye", 0, 3},
    ExactInputs{"RandomUniform", 0, 2},
    ExactInputs{"NonMaxSuppression", 0, 0},
    ExactInputs{"NonMaxSuppression", 2, 5},
    ExactInputs{"FakeQuantize", 1, 4},
    ExactInputs{"PriorBox", 0, 1},
    ExactInputs{"PriorBoxClustered", 0, 1},
    ExactInputs{"Proposal", 2, 2},
    ExactInputs{"ROIPooling", 1, 1},
    ExactInputs{"DeformablePSROIPooling", 1, 1},
    ExactInputs{"ExperimentalDetectronDetectionOutput", 0, 0},
    ExactInputs{"ExperimentalDetectronDetectionOutput", 3, 3},
    ExactInputs{"ExperimentalDetectronGenerateProposalsSingleImage", 0, 1},
    ExactInputs{"ExperimentalDetectronROIFeatureExtractor", 0, 0},
    ExactInputs{"MatrixNms", 0, 0},
    ExactInputs{"MulticlassNms", 0, 0},
    ExactInputs{"MulticlassNms", 2, 2},
    ExactInputs{"GridSample", 1, 1},
    ExactInputs{"ROIAlign", 1, 2},
    ExactInputs{"PSROIPooling", 1, 1},
    ExactInputs{"DetectionOutput", 2, 2},
    ExactInputs{"Bucketize", 1, 1},
    ExactInputs{"SearchSorted", 0, 0},
    ExactInputs{"Gather", 1, 2},
    ExactInputs{"GatherElements", 1, 1},
    ExactInputs{"GatherND", 1, 1},
    ExactInputs{"GatherTree", 0, 3},
    ExactInputs{"ScatterUpdate", 1, 1},
    ExactInputs{"ScatterElementsUpdate", 1, 1},
    ExactInputs{"ScatterNDUpdate", 1, 1},
    ExactInputs{"ReverseSequence", 1, 1},
    ExactInputs{"CumSum", 1, 1},
    ExactInputs{"Roll", 1, 2},
    ExactInputs{"ConvolutionBackpropData", 3, 3},
    ExactInputs{"Loop", 0, 1},
    ExactInputs{"If", 0, 0},
    ExactInputs{"AdaptiveAvgPool", 1, 1},
    ExactInputs{"AdaptiveMaxPool", 1, 1},
    ExactInputs{"GenerateProposals", 0, 1},
    ExactInputs{"CTCGreedyDecoder", 1, 1},
    ExactInputs{"BatchToSpace", 1, 3},
    ExactInputs{"SpaceToBatch", 1, 3},
};

bool is_data(const TensorType& type) { return type.shape.ranked() && type.shape.rank() > 2; }

}  // namespace

// From these inputs back to what they are computed of; large data is not looked into.
std::vector<bool> exact_values(const Graph& graph) {
  std::vector<bool> exact(graph.value_slots());
  std::vector<ValueId> pending;
  for (std::uint32_t i = 0; i < graph.node_slots(); ++i) {
    const Node& node = graph.node({i});
    if (node.erased()) continue;
    for (const auto& [op, first, last] : kExact)
      if (op == node.op.info().name)
        for (std::size_t k = first; k <= last && k < node.inputs.size(); ++k)
          pending.push_back(node.inputs[k]);
  }
  while (!pending.empty()) {
    const ValueId v = pending.back();
    pending.pop_back();
    if (!v.valid() || exact[v.index]) continue;
    exact[v.index] = true;
    const NodeId producer = graph.producer(v);
    if (!producer.valid() || is_data(graph.type(v)) || graph.node(producer).op.info().name == "ShapeOf")
      continue;
    for (const auto input : graph.node(producer).inputs) pending.push_back(input);
  }
  return exact;
}

}  // namespace lamina::ir
