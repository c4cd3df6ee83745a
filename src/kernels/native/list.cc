/// The native kernels, in the order in which they are asked.
#include "kernels/list.h"
#include "kernels/native/offers.h"
#include "kernels/native/quantize/small_float.h"
#include "ops/attention.h"
#include "ops/convolution_depthwise.h"
#include "ops/elementwise.h"
#include "ops/generation.h"
#include "ops/linear_attention.h"
#include "ops/matmul.h"
#include "ops/normalization.h"
#include "ops/quantization.h"
#include "ops/reduction.h"
#include "ops/resize.h"
#include "ops/sorting.h"
#include "ops/trees.h"

namespace lamina {

void add_native_kernels(std::vector<Kernel>& list) {
  list.push_back({"native.movement", is_movement, offer_movement});
  list.push_back({"native.gathering", is_gathering, offer_gathering});
  list.push_back({"native.scattering", is_scattering, offer_scattering});
  list.push_back({"native.topk", [](const Op& op) { return op.is<TopK>(); }, offer_topk});
  list.push_back({"native.cumsum", [](const Op& op) { return op.is<CumSum>(); }, offer_cumsum});
  list.push_back({"native.one_hot", [](const Op& op) { return op.is<OneHot>(); }, offer_one_hot});
  list.push_back({"native.dynamic_quantize", [](const Op& op) { return op.is<DynamicQuantize>(); },
                  offer_dynamic_quantize});
  list.push_back({"native.small_float",
                  [](const Op& op) { return op.is<Convert>() || op.is<ConvertSmallFloat>(); },
                  offer_small_float});
  list.push_back({"native.elementwise",
                  [](const Op& op) { return op.has(Trait::elementwise) || op.is<Elementwise>(); },
                  offer_native_elementwise});
  list.push_back({"native.normalization", is_normalization, offer_normalize});
  list.push_back({"native.reduction",
                  [](const Op& op) { return op.family() == OpFamily::reduction && op.has(Trait::epilogue); },
                  offer_reduce});
  list.push_back({"native.recurrent", is_recurrent, offer_recurrent});
  list.push_back({"native.softmax", [](const Op& op) { return op.is<Softmax>() || op.is<LogSoftmax>(); },
                  offer_native_softmax});
  list.push_back({"native.attention", [](const Op& op) { return op.is<ScaledDotProductAttention>(); },
                  offer_native_attention});
  list.push_back({"native.linear_attention", [](const Op& op) { return op.is<LinearAttention>(); },
                  offer_linear_attention});
  list.push_back({"native.trees", [](const Op& op) { return op.is<TreeEnsemble>(); }, offer_trees});
  list.push_back({"native.resize", [](const Op& op) { return op.is<Interpolate>(); }, offer_resize});
  list.push_back({"native.matmul", [](const Op& op) { return op.is<MatMul>(); }, offer_native_matmul});
  list.push_back(
      {"native.integer_matmul", [](const Op& op) { return op.is<MatMul>(); }, offer_integer_matmul});
  list.push_back({"native.pooling", is_pooling, offer_native_pooling});
  list.push_back({"native.lrn", [](const Op& op) { return op.is<LRN>(); }, offer_lrn});
  list.push_back({"native.convolution",
                  [](const Op& op) { return op.is<Convolution>() || op.is<ConvolutionBackpropData>(); },
                  offer_native_convolution});
  list.push_back({"native.integer_convolution",
                  [](const Op& op) { return op.is<Convolution>() || op.is<ConvolutionBackpropData>(); },
                  offer_integer_convolution});
  list.push_back({"native.depthwise",
                  [](const Op& op) { return op.is<Convolution>() || op.is<ConvolutionBackpropData>(); },
                  offer_native_depthwise});
  list.push_back({"native.conv_depthwise", [](const Op& op) { return op.is<ConvolutionDepthwise>(); },
                  offer_native_conv_depthwise});
  list.push_back({"native.binary_convolution", [](const Op& op) { return op.is<BinaryConvolution>(); },
                  offer_binary_convolution});
  list.push_back({"native.comparison", [](const Op& op) { return op.is<Greater>(); }, offer_comparison});
}

}  // namespace lamina
