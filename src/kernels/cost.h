#pragma once
/// Estimated microseconds on one thread of a machine. They order offers; they promise nothing.
#include "kernels/kernel.h"

namespace lamina {

/// What work a kernel does: a row of the cost table (cost.cc), fitted by bench/fit_costs.py.
enum class Family : std::uint8_t {
  brgemm_conv,       ///< oneDNN brgconv
  brgemm_1x1,        ///< oneDNN brgconv_1x1
  jit_conv,          ///< oneDNN's older direct convolutions: first layers, grouped, dilated
  jit_depthwise,     ///< oneDNN depthwise
  gemm_conv,         ///< oneDNN convolution by im2col
  brgemm_deconv,     ///< oneDNN transposed convolution
  brgemm_matmul,     ///< oneDNN matmul of several rows
  matmul_row,        ///< a matrix by a vector: bound by memory
  native_gemm,       ///< our matrix products and 1x1 convolutions
  native_depthwise,  ///< our depthwise convolution
  native_direct,     ///< our other convolutions
  native_binary,     ///< BinaryConvolution; `work` counts pairs of bits
  vector_light,      ///< vector code of a few instructions per element; bound by memory
  vector_math,       ///< with exp, log, erf, ...; `work` counts evaluations
  onednn_pass,       ///< a oneDNN primitive that passes over its tensors (eltwise, pool, softmax)
  copy,              ///< whole lines moved
  transpose,         ///< elements moved one by one or by small blocks
  scalar,            ///< plain loops; `work` counts operations
  reference,         ///< the interpreter's evaluation
};

/// call + work / rate + bytes / bandwidth. `work`: multiply-adds or evaluations.
double cost_of(const Machine& machine, Family family, double work, double bytes = 0);

/// Bytes moved by whole lines.
double move_cost(const Machine& machine, double bytes);

/// What a tensor of that size costs more when it is written whole before it is read: what kernels say is for
/// tensors nearby, and what does not fit into L2 is there no more by then.
double far_cost(const Machine& machine, double bytes);

}  // namespace lamina
