#include "kernels/cost.h"

#include <algorithm>

#include "kernels/onednn_isa.h"

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

/// Fitted by bench/fit_costs.py on an Intel Xeon with AVX-512, whose cores were otherwise idle, at each limit
/// of instructions; what its problems do not tell is estimated. One row per family, in the order of the
/// enumeration.
constexpr Row kTable[] = {
    // call   sse41            avx2              avx512
    {0.5, {6000, 20000}, {42000, 500000}, {86500, 500000}},     // brgemm_conv
    {0.5, {15000, 500000}, {42500, 110000}, {87000, 100000}},   // brgemm_1x1
    {0.5, {10500, 26000}, {42000, 24000}, {72000, 36000}},      // jit_conv
    {0.2, {16000, 120000}, {22000, 160000}, {43000, 110000}},   // jit_depthwise
    {0.6, {12000, 500000}, {20000, 500000}, {25000, 500000}},   // gemm_conv
    {0.6, {8000, 10000}, {33000, 18000}, {53000, 13000}},       // brgemm_deconv
    {0.55, {12000, 500000}, {38000, 500000}, {77000, 500000}},  // brgemm_matmul
    {0.05, {7900, 500000}, {8600, 500000}, {8100, 500000}},     // matmul_row
    {0.05, {13600, 500000}, {43000, 180000}, {87000, 180000}},  // native_gemm
    {0.05, {11000, 70000}, {28000, 140000}, {54000, 180000}},   // native_depthwise
    {0.05, {14000, 500000}, {38500, 500000}, {77000, 500000}},  // native_direct
    {0.05, {205000, 24000}, {460000, 22000}, {680000, 24000}},  // native_binary
    {0.02, {11000, 270000}, {15000, 500000}, {17000, 500000}},  // vector_light
    {0.02, {450, 500000}, {1000, 500000}, {2200, 500000}},      // vector_math
    {0.2, {4000, 52000}, {8000, 75000}, {12000, 79000}},        // onednn_pass
    {0.03, {1, 76000}, {1, 77000}, {1, 78000}},                 // copy
    {0.1, {1, 49000}, {1, 59000}, {1, 55000}},                  // transpose
    {0.1, {300, 8000}, {400, 8000}, {400, 8000}},               // scalar
    {5.0, {50, 1000}, {50, 1000}, {50, 1000}},                  // reference
};

/// oneDNN may run another instruction set than our kernels do.
Isa isa_of(Family family) {
  const bool onednn = family <= Family::brgemm_matmul || family == Family::onednn_pass;
  return onednn ? onednn_isa() : effective_isa();
}

const Rates& rates(const Row& row, Isa isa) {
  switch (isa) {
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
  const Rates& r = rates(row, isa_of(family));
  return row.call + work / r.work + bytes / r.bytes;
}

double move_cost(double bytes) { return cost_of(Family::copy, 0, bytes); }

double far_cost(double bytes) {
  constexpr double kNearBytes = 1.2e6, kFarRate = 30000;  // the rate is per microsecond
  return std::max(0.0, bytes - kNearBytes) / kFarRate;
}

}  // namespace lamina
