#include "kernels/cost.h"

#include <algorithm>

namespace lamina {
namespace {

struct PerMicrosecond {
  double work, bytes;
};

struct Row {
  double call;  ///< microseconds
  PerMicrosecond sse41, avx2, avx512;
  double Rates::*work;  ///< how `work` scales with the machine; calls and bytes scale with theirs
};

/// Fitted by bench/fit_costs.py on an Intel Xeon (Sapphire Rapids) with AVX-512, whose cores were otherwise
/// idle, at each limit of instructions; what its problems do not tell is estimated. One row per family, in
/// the order of the enumeration. Other machines are multiples of that one (base/machine_rates.cc).
constexpr Row kTable[] = {
    // call   sse41            avx2              avx512
    {0.5, {6000, 20000}, {42000, 500000}, {86500, 500000}, &Rates::products},     // brgemm_conv
    {0.5, {15000, 500000}, {42500, 110000}, {87000, 100000}, &Rates::products},   // brgemm_1x1
    {0.5, {10500, 26000}, {42000, 24000}, {72000, 36000}, &Rates::products},      // jit_conv
    {0.2, {16000, 120000}, {22000, 160000}, {43000, 110000}, &Rates::products},   // jit_depthwise
    {0.6, {12000, 500000}, {20000, 500000}, {25000, 500000}, &Rates::products},   // gemm_conv
    {0.6, {8000, 10000}, {33000, 18000}, {53000, 13000}, &Rates::products},       // brgemm_deconv
    {0.55, {12000, 500000}, {38000, 500000}, {77000, 500000}, &Rates::products},  // brgemm_matmul
    {0.05, {7900, 500000}, {8600, 500000}, {8100, 500000}, &Rates::memory},       // matmul_row
    {0.05, {13600, 500000}, {43000, 180000}, {87000, 180000}, &Rates::native},    // native_gemm
    {0.05, {11000, 70000}, {28000, 140000}, {54000, 180000}, &Rates::native},     // native_depthwise
    {0.05, {14000, 500000}, {38500, 500000}, {77000, 500000}, &Rates::native},    // native_direct
    {0.05, {205000, 24000}, {460000, 22000}, {680000, 24000}, &Rates::light},     // native_binary
    {0.02, {11000, 270000}, {15000, 500000}, {17000, 500000}, &Rates::light},     // vector_light
    {0.02, {450, 500000}, {1000, 500000}, {2200, 500000}, &Rates::math},          // vector_math
    {0.2, {4000, 52000}, {8000, 75000}, {12000, 79000}, &Rates::light},           // onednn_pass
    {0.03, {1, 76000}, {1, 77000}, {1, 78000}, &Rates::memory},                   // copy
    {0.1, {1, 49000}, {1, 59000}, {1, 55000}, &Rates::memory},                    // transpose
    {0.1, {300, 8000}, {400, 8000}, {400, 8000}, &Rates::calls},                  // scalar
    {5.0, {50, 1000}, {50, 1000}, {50, 1000}, &Rates::calls},                     // reference
};

/// oneDNN may run another instruction set than our kernels do.
Isa isa_of(const Machine& machine, Family family) {
  const bool onednn = family <= Family::brgemm_matmul || family == Family::onednn_pass;
  return onednn ? machine.library : machine.isa();
}

const PerMicrosecond& rates(const Row& row, Isa isa) {
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

double cost_of(const Machine& machine, Family family, double work, double bytes) {
  const Row& row = kTable[static_cast<std::size_t>(family)];
  const auto& r = rates(row, isa_of(machine, family));
  return row.call / machine.rates.calls + work / (r.work * machine.rates.*row.work) +
         bytes / (r.bytes * machine.rates.memory);
}

double move_cost(const Machine& machine, double bytes) { return cost_of(machine, Family::copy, 0, bytes); }

double far_cost(const Machine& machine, double bytes) {
  constexpr double kFarRate = 30000;  // per microsecond
  const double near_bytes = 0.57 * static_cast<double>(machine.l2);
  return std::max(0.0, bytes - near_bytes) / (kFarRate * machine.rates.memory);
}

}  // namespace lamina
