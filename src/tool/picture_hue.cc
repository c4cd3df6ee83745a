/// Colours of operators.
#include <array>

#include "tool/picture.h"

namespace lamina::tool {
namespace {

struct HueRow {
  Hue hue;
  std::string_view name, colour;
};

constexpr std::array kHues{HueRow{Hue::port, "input or output", "#5b6470"},
                           HueRow{Hue::convolution, "convolution", "#2f6db5"},
                           HueRow{Hue::matmul, "matrix product", "#4b4fb8"},
                           HueRow{Hue::activation, "activation", "#b8433a"},
                           HueRow{Hue::arithmetic, "arithmetic", "#b5722a"},
                           HueRow{Hue::normalization, "normalization", "#2b8a78"},
                           HueRow{Hue::pooling, "pooling, resize", "#3c8a3f"},
                           HueRow{Hue::reduction, "reduction, softmax", "#7f8f26"},
                           HueRow{Hue::movement, "moves data", "#7d5f4b"},
                           HueRow{Hue::shape, "shapes only", "#8b8f96"},
                           HueRow{Hue::quantization, "quantisation, types", "#8a4fa3"},
                           HueRow{Hue::recurrent, "recurrent", "#a3407c"},
                           HueRow{Hue::detection, "detection, sorting", "#17808f"},
                           HueRow{Hue::control, "control flow, state", "#33383f"},
                           HueRow{Hue::layout, "reorder, copy", "#9a9a4a"},
                           HueRow{Hue::unknown, "not supported", "#d4002a"},
                           HueRow{Hue::other, "other", "#6f6f6f"}};

struct OperatorHue {
  Hue hue;
  std::string_view names;  ///< spaces around each
};

constexpr std::array kOperators{
    OperatorHue{Hue::convolution,
                " Convolution ConvolutionBackpropData BinaryConvolution ConvolutionDepthwise "
                "DeformableConvolution "},
    OperatorHue{Hue::matmul, " MatMul Determinant Einsum ScaledDotProductAttention "},
    OperatorHue{Hue::normalization,
                " BatchNormInference LayerNormalization GroupNormalization RMSNormalization MVN LRN "
                "NormalizeL2 GRN "},
    OperatorHue{Hue::pooling,
                " MaxPool AvgPool AdaptiveAvgPool AdaptiveMaxPool Interpolate GridSample YuvToRgb "},
    OperatorHue{Hue::reduction, " Softmax LogSoftmax CumSum CumProd "},
    OperatorHue{
        Hue::movement,
        " Transpose Concat Split VariadicSplit Slice StridedSlice Pad Roll Gather GatherElements GatherND "
        "GatherTree ScatterElementsUpdate ScatterNDUpdate ScatterUpdate Tile Broadcast DepthToSpace "
        "SpaceToDepth SpaceToBatch BatchToSpace ShuffleChannels ReverseSequence Trilu "
        "ExtractImagePatches "},
    OperatorHue{Hue::shape, " Reshape Squeeze Unsqueeze ShapeOf Identity Range Eye OneHot "},
    OperatorHue{Hue::quantization, " FakeQuantize Quantize Dequantize DynamicQuantize Convert ConvertLike "},
    OperatorHue{Hue::recurrent, " LSTMCell GRUCell RNNCell LSTMSequence GRUSequence RNNSequence "},
    OperatorHue{
        Hue::detection,
        " TopK NonMaxSuppression MulticlassNms MatrixNms NonZero Unique SearchSorted Bucketize "
        "DetectionOutput PriorBox "
        "PriorBoxClustered Proposal GenerateProposals "
        "ExperimentalDetectronGenerateProposalsSingleImage ExperimentalDetectronDetectionOutput "
        "ExperimentalDetectronROIFeatureExtractor ROIPooling ROIAlign PSROIPooling DeformablePSROIPooling "
        "RegionYolo ReorgYolo "
        "CTCGreedyDecoder CTCGreedyDecoderSeqLen CTCLoss "},
    OperatorHue{Hue::activation, " PRelu "},
    OperatorHue{Hue::arithmetic, " Elementwise "},
    OperatorHue{Hue::control, " ReadValue Assign "},
    OperatorHue{Hue::unknown, " Opaque "}};

}  // namespace

Hue hue_of(const Op& op) {
  const auto wanted = " " + std::string(op.info().name) + " ";
  for (const auto& row : kOperators)
    if (row.names.find(wanted) != std::string_view::npos) return row.hue;
  if (op.has(Trait::control_flow)) return Hue::control;
  if (wanted.starts_with(" Reduce")) return Hue::reduction;
  if (op.has(Trait::unary_elementwise)) return Hue::activation;
  if (op.has(Trait::elementwise)) return Hue::arithmetic;
  return Hue::other;
}

std::string_view name_of(Hue hue) { return kHues[static_cast<std::size_t>(hue)].name; }
std::string_view colour_of(Hue hue) { return kHues[static_cast<std::size_t>(hue)].colour; }

}  // namespace lamina::tool
