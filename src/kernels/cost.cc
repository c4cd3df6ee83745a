#include "kernels/cost.h"

#include "base/cpu.h"

namespace lamina {
namespace {

struct Rates {
  double work;   ///< per microsecond
  double bytes;  ///< per microsecond
};

struct Row {
  double call;  ///< microseconds
  Rates sse41, avx2, avx512;
};

/// One row per family, in the order of the enumeration.
constexpr Row kTable[] = {
    // call   sse41           avx2            avx512
    {0.6, {6000, 20000}, {35000, 20000}, {65000, 20000}},   // brgemm_conv
    {0.6, {6000, 20000}, {33000, 20000}, {60000, 20000}},   // brgemm_1x1
    {0.6, {5000, 20000}, {30000, 20000}, {50000, 20000}},   // jit_conv
    {0.5, {4000, 12000}, {12000, 12000}, {18000, 15000}},   // jit_depthwise
    {3.0, {5000, 6000}, {10000, 6000}, {12000, 6000}},      // gemm_conv
    {1.0, {4000, 10000}, {20000, 10000}, {35000, 10000}},   // brgemm_deconv
    {0.6, {7000, 20000}, {33000, 20000}, {60000, 20000}},   // brgemm_matmul
    {0.6, {4000, 12000}, {6000, 12000}, {6000, 12000}},     // matmul_row
    {0.1, {9000, 20000}, {33000, 20000}, {60000, 20000}},   // native_gemm
    {0.1, {5000, 15000}, {15000, 15000}, {25000, 20000}},   // native_depthwise
    {0.1, {7000, 20000}, {25000, 20000}, {40000, 20000}},   // native_direct
    {0.05, {8000, 15000}, {16000, 20000}, {24000, 24000}},  // vector_light
    {0.05, {200, 15000}, {600, 20000}, {1200, 24000}},      // vector_math
    {0.4, {4000, 10000}, {8000, 14000}, {12000, 16000}},    // onednn_pass
    {0.1, {1, 12000}, {1, 16000}, {1, 16000}},              // copy
    {0.1, {1, 4000}, {1, 6000}, {1, 6000}},                 // transpose
    {0.1, {300, 8000}, {400, 8000}, {400, 8000}},           // scalar
    {5.0, {50, 1000}, {50, 1000}, {50, 1000}},              // reference
};

const Rates& rates(const Row& row) {
  switch (effective_isa()) {
    case Isa::avx512:
      return row.avx512;
    case Isa::avx2:
      return row.avx2;
    case Isa::sse41:
      break;
  }
  return row.sse41;
}

}  // namespace

double cost_of(Family family, double work, double bytes) {
  const Row& row = kTable[static_cast<std::size_t>(family)];
  const Rates& r = rates(row);
  return row.call + work / r.work + bytes / r.bytes;
}

double move_cost(double bytes) { return cost_of(Family::copy, 0, bytes); }

}  // namespace lamina
