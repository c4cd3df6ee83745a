#pragma once
/// The kinds of work that costs are sums of. A header of its own: new kinds do not rebuild all who compare
/// offers (cost.h).
#include <cstddef>
#include <cstdint>

namespace lamina {

/// What kind of work it is: a row of the cost table (cost.cc), fitted by bench/fit_costs.py.
enum class Family : std::uint8_t {
  brgemm_conv,          ///< oneDNN brgconv
  brgemm_1x1,           ///< oneDNN brgconv_1x1
  jit_conv,             ///< oneDNN's older direct convolutions: first layers, grouped, dilated
  jit_depthwise,        ///< oneDNN depthwise
  gemm_conv,            ///< oneDNN convolution by im2col
  gemm_conv_groups,     ///< gemm_conv in groups: its matrices are too narrow to be fast
  brgemm_deconv,        ///< oneDNN transposed convolution
  deconv_gradient,      ///< deconv as the gradient of a convolution, which starts slowly
  deconv_group,         ///< one more group of that
  brgemm_matmul,        ///< oneDNN matmul of several rows
  gemm_again,           ///< one more product of oneDNN's that does them one after the other
  matmul_row,           ///< oneDNN matmul of one row: bound by memory
  matmul_row_memory,    ///< bytes of that matrix beyond all caches, besides
  gemm_row_again,       ///< one more of them
  onednn_pass,          ///< a oneDNN primitive that passes over its tensors (eltwise, mean pooling)
  onednn_pixel,         ///< a pixel of few channels of a binary primitive
  onednn_line,          ///< a line of one that has one number of the smaller operand
  onednn_plain_pool,    ///< pooling of plain tensors
  onednn_plain_resize,  ///< resampling of plain tensors
  onednn_lrn,
  onednn_layer_norm,
  native_gemm,        ///< our matrix products and 1x1 convolutions
  product_row,        ///< start and end of a tile of them, per row
  product_sum,        ///< of vectors along k: a sum of lanes
  product_segment,    ///< a tile's moving on to its next segment, per row
  product_pack,       ///< a row of B that is packed at run time, beside moving it
  product_stages,     ///< start of a program of stages behind a product
  near_row,           ///< B of a product of one row, in floats, where it stays in L2
  far_row,            ///< and where it does not
  row_memory,         ///< bytes of it beyond all caches, besides
  far_weights,        ///< bytes of B that a product of several rows fetches from beyond L2
  row_again,          ///< one more product of one row
  native_depthwise,   ///< our depthwise convolution
  depthwise_strided,  ///< depthwise with windows that do not overlap in steps of 1
  depthwise_int8,     ///< depthwise of 8-bit integers
  native_direct,      ///< our other convolutions
  native_int8,        ///< products of integers, in pairs of 16 bits; `work` counts multiply-adds
  native_vnni,        ///< in quads of 8 bits
  native_binary,      ///< BinaryConvolution; `work` counts pairs of bits
  binary_depthwise,   ///< binary, by channels
  pair_step,          ///< of a convolution and the depthwise one behind it: some lines
  attention_softmax,  ///< of scores that lie near
  attention_pack,     ///< keys and values
  vector_light,       ///< vector code of a few instructions per element; bound by memory
  stage_math,         ///< what of programs of stages is bound by arithmetic; `work` is as in vector_light
  vector_math,        ///< with exp, log, erf, ...; `work` counts evaluations
  native_lrn,
  recurrent,        ///< multiply-adds of our recurrent networks
  pool_max_pixels,  ///< our maxima of channels-last pixels; `work` counts positions of windows
  pool_mean_pixels,
  pool_max_lines,  ///< of plain lines
  pool_mean_lines,
  pool_start,      ///< of a position of the windows on a line
  pool_vector,     ///< a vector of that line
  reduce_line,     ///< a reduced line, beside reading it
  normalize_line,  ///< a normalised one
  copy,            ///< whole lines moved
  copy_run,        ///< one of the pieces that are known beforehand
  gather_index,    ///< an index that is looked at
  transpose,       ///< elements moved one by one or by small blocks
  far,             ///< bytes beyond L2: others say what they take for tensors nearby
  memory,          ///< bytes beyond all caches, besides
  fetched,         ///< bytes beyond L2 that are fetched ahead: a gain
  streamed,        ///< bytes that are not read before they are written: a gain
  scalar,          ///< plain loops; `work` counts operations
  reference,       ///< the interpreter's evaluation
};
inline constexpr std::size_t kFamilies = static_cast<std::size_t>(Family::reference) + 1;

}  // namespace lamina
