#include "kernels/cost.h"
#include "kernels/family.h"

#include <algorithm>
#include <array>

namespace lamina {
namespace {

struct PerMicrosecond {
  double call;         ///< microseconds
  double work, bytes;  ///< per microsecond; 0: not counted
};

struct Row {
  std::string_view name;
  bool library;           ///< oneDNN's code, which may run another instruction set than ours
  double Rates::*scales;  ///< how `work` scales with the machine; calls and bytes scale with theirs
  PerMicrosecond sse41, avx2, avx512;
};

constexpr bool kOneDnn = true, kOurs = false;
constexpr auto kProducts = &Rates::products, kNative = &Rates::native, kLight = &Rates::light,
               kMath = &Rates::math, kMemory = &Rates::memory, kCalls = &Rates::calls;

/// What was not seen to differ between instruction sets.
constexpr Row all(std::string_view name, bool library, double Rates::*scales, PerMicrosecond every) {
  return {name, library, scales, every, every, every};
}
/// What only is counted.
constexpr Row count(std::string_view name, bool library, double call) {
  return all(name, library, kCalls, {call, 0, 0});
}

/// Fitted by bench/fit_costs.py on an Intel Xeon (Sapphire Rapids) with AVX-512, whose cores were otherwise
/// idle, at each limit of instructions; what its problems do not tell is estimated, and what is counted apart
/// since then fitted on an AMD Zen 5. One row per family, in the order of the enumeration. Other machines are
/// multiples of that one (base/machine_rates.cc).
constexpr std::array<Row, kFamilies> kTable{{
    {"brgemm_conv", kOneDnn, kProducts, {0.5, 6000, 20000}, {0.7, 42000, 500000}, {0.62, 86500, 500000}},
    {"brgemm_1x1", kOneDnn, kProducts, {0.5, 15000, 500000}, {0.52, 41600, 108000}, {0.5, 87000, 100000}},
    {"jit_conv", kOneDnn, kProducts, {0.5, 10500, 26000}, {0.5, 42000, 24000}, {0.44, 78000, 43000}},
    {"jit_depthwise", kOneDnn, kProducts, {0.2, 16000, 120000}, {0.2, 22000, 160000}, {0.2, 43000, 110000}},
    {"gemm_conv", kOneDnn, kProducts, {0.6, 12000, 500000}, {0.6, 20000, 500000}, {0.6, 25000, 500000}},
    {"gemm_conv_groups", kOneDnn, kProducts, {0.6, 1500, 500000}, {0.6, 2500, 500000}, {0.6, 3125, 500000}},
    {"brgemm_deconv", kOneDnn, kProducts, {0.6, 8000, 10000}, {0.6, 33000, 18000}, {0.6, 53000, 13000}},
    {"deconv_gradient", kOneDnn, kProducts, {16.5, 3200, 4000}, {16.5, 13200, 7200}, {16.5, 21200, 5200}},
    count("deconv_group", kOneDnn, 37.5),
    {"brgemm_matmul",
     kOneDnn,
     kProducts,
     {0.55, 12000, 500000},
     {0.55, 38000, 500000},
     {0.55, 77000, 500000}},
    count("gemm_again", kOneDnn, 0.9),
    {"matmul_row", kOneDnn, kMemory, {0.05, 15000, 0}, {0.05, 16300, 0}, {0.05, 14500, 0}},
    {"matmul_row_memory", kOurs, kMemory, {0, 0, 20000}, {0, 0, 20000}, {0, 0, 39000}},
    {"gemm_row_again", kOneDnn, kCalls, {0.3, 0, 0}, {0.12, 0, 0}, {0.3, 0, 0}},
    {"onednn_pass", kOneDnn, kLight, {0.2, 0, 52000}, {0.2, 0, 75000}, {0.2, 0, 79000}},
    count("onednn_pixel", kOneDnn, 0.009),
    {"onednn_line", kOneDnn, kCalls, {0.0075, 0, 0}, {0.0075, 0, 0}, {0.003, 0, 0}},
    {"onednn_plain_pool", kOneDnn, kLight, {0.8, 0, 13000}, {0.8, 0, 18750}, {0.8, 0, 19750}},
    {"onednn_plain_resize", kOneDnn, kLight, {1.6, 0, 6500}, {1.6, 0, 9375}, {1.6, 0, 9875}},
    {"onednn_lrn", kOneDnn, kLight, {0.8, 0, 13000}, {0.8, 0, 18750}, {0.8, 0, 19750}},
    {"onednn_layer_norm", kOneDnn, kLight, {0.6, 0, 17333}, {0.6, 0, 25000}, {0.6, 0, 26333}},
    {"native_gemm", kOurs, kNative, {0.05, 13600, 500000}, {0.05, 43000, 180000}, {0.05, 82300, 460000}},
    all("product_row", kOurs, kNative, {0, 714.29, 0}),
    all("product_sum", kOurs, kNative, {0, 1250, 0}),
    all("product_segment", kOurs, kNative, {0, 2000, 0}),
    all("product_pack", kOurs, kNative, {0, 166.67, 0}),
    all("product_stages", kOurs, kNative, {0, 28.571, 0}),
    {"near_row", kOurs, kMemory, {0.05, 39500, 0}, {0.05, 43000, 0}, {0.05, 40500, 0}},
    {"far_row", kOurs, kMemory, {0.05, 15500, 0}, {0.05, 12300, 0}, {0.05, 16200, 0}},
    all("row_memory", kOurs, kMemory, {0, 0, 27000}),
    all("far_weights", kOurs, kMemory, {0, 0, 30000}),
    count("row_again", kOurs, 0.1),
    {"native_depthwise", kOurs, kNative, {0.05, 11000, 70000}, {0.05, 28000, 140000}, {0.05, 54000, 180000}},
    {"depthwise_strided", kOurs, kNative, {0.05, 11000, 70000}, {0.05, 36100, 74800}, {0.05, 50400, 98400}},
    {"depthwise_int8", kOurs, kNative, {0.05, 16000, 140000}, {0.05, 48000, 280000}, {0.05, 104000, 360000}},
    {"native_direct", kOurs, kNative, {0.05, 14000, 500000}, {0.05, 38500, 500000}, {0.05, 79000, 440000}},
    {"native_int8", kOurs, kNative, {0.05, 30000, 500000}, {0.05, 66000, 500000}, {0.05, 145000, 500000}},
    {"native_vnni", kOurs, kNative, {0.05, 30000, 500000}, {0.05, 150000, 500000}, {0.05, 390000, 500000}},
    {"native_binary", kOurs, kLight, {0.05, 205000, 24000}, {0.05, 460000, 22000}, {0.05, 680000, 24000}},
    {"binary_depthwise", kOurs, kLight, {0.05, 89130, 48000}, {0.05, 200000, 44000}, {0.05, 295652, 48000}},
    count("pair_step", kOurs, 0.3),
    {"attention_softmax", kOurs, kMath, {0.02, 607.5, 0}, {0.02, 1350, 0}, {0.02, 2970, 0}},
    all("attention_pack", kOurs, kMemory, {0, 0, 8800}),
    {"vector_light", kOurs, kLight, {0.02, 11000, 270000}, {0.011, 13600, 350000}, {0.02, 17000, 500000}},
    {"stage_math", kOurs, kLight, {0, 2600, 0}, {0, 5200, 0}, {0, 17000, 0}},
    {"vector_math", kOurs, kMath, {0.02, 450, 500000}, {0.02, 1000, 500000}, {0.02, 2200, 500000}},
    {"native_lrn", kOurs, kLight, {0.06, 3666.7, 90000}, {0.06, 5000, 166667}, {0.02, 17000, 500000}},
    {"recurrent", kOurs, kMemory, {0.05, 15000, 0}, {0.05, 16300, 0}, {0.05, 14500, 0}},
    {"pool_max_pixels", kOurs, kLight, {0.2, 55000, 54700}, {0.2, 68000, 79000}, {0.2, 85000, 83200}},
    {"pool_mean_pixels", kOurs, kLight, {0.2, 55000, 49500}, {0.2, 68000, 71400}, {0.2, 85000, 75200}},
    {"pool_max_lines", kOurs, kLight, {0.6, 13750, 18200}, {0.6, 17000, 26300}, {0.6, 21250, 27700}},
    {"pool_mean_lines", kOurs, kLight, {0.6, 11000, 16500}, {0.6, 13600, 23800}, {0.6, 17000, 25000}},
    count("pool_start", kOurs, 0.0057),
    count("pool_vector", kOurs, 0.003),
    count("reduce_line", kOurs, 0.015),
    count("normalize_line", kOurs, 0.011),
    {"copy", kOurs, kMemory, {0.03, 0, 76000}, {0.03, 0, 77000}, {0.03, 0, 78000}},
    count("copy_run", kOurs, 0.0075),
    count("gather_index", kOurs, 0.003),
    {"transpose", kOurs, kMemory, {0.1, 0, 49000}, {0.1, 0, 59000}, {0.1, 0, 55000}},
    all("far", kOurs, kMemory, {0, 0, 30000}),
    all("memory", kOurs, kMemory, {0, 0, 20000}),
    all("fetched", kOurs, kMemory, {0, 0, 20000}),
    all("streamed", kOurs, kMemory, {0, 0, 25000}),
    {"scalar", kOurs, kCalls, {0.1, 300, 8000}, {0.1, 400, 8000}, {0.1, 400, 8000}},
    all("reference", kOurs, kCalls, {5, 50, 1000}),
}};

const Row& row_of(Family family) { return kTable[static_cast<std::size_t>(family)]; }

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

double inverse(double rate) { return rate > 0 ? 1 / rate : 0; }

}  // namespace

std::string_view name_of(Family family) { return row_of(family).name; }

UnitCosts unit_costs(const Machine& machine, Family family) {
  const Row& row = row_of(family);
  const auto& r = rates(row, row.library ? machine.library : machine.isa());
  return {r.call / machine.rates.calls, inverse(r.work * machine.rates.*row.scales),
          inverse(r.bytes * machine.rates.memory)};
}

double Cost::us() const {
  double sum = 0;
  for (const auto& part : parts_) sum += part.us;
  return sum;
}

Cost& Cost::operator+=(const Cost& other) {
  for (const auto& more : other.parts_) {
    const auto at = std::find_if(parts_.begin(), parts_.end(),
                                 [&](const Part& part) { return part.family == more.family; });
    if (at == parts_.end()) {
      parts_.push_back(more);
      continue;
    }
    at->calls += more.calls, at->work += more.work, at->bytes += more.bytes;
    at->us += more.us;
  }
  return *this;
}

Cost& Cost::operator*=(double factor) {
  for (auto& part : parts_)
    part.calls *= factor, part.work *= factor, part.bytes *= factor, part.us *= factor;
  return *this;
}

Cost cost_of(const Machine& machine, Family family, double work, double bytes, double calls) {
  if (work == 0 && bytes == 0 && calls == 0) return {};
  const auto unit = unit_costs(machine, family);
  return Cost({family, calls, work, bytes, calls * unit.call + work * unit.work + bytes * unit.byte});
}

Cost move_cost(const Machine& machine, double bytes, double calls) {
  return cost_of(machine, Family::copy, 0, bytes, calls);
}

double beyond_l2(const Machine& machine, double bytes) {
  return std::max(0.0, bytes - 0.57 * static_cast<double>(machine.l2));
}

double beyond_caches(const Machine& machine, double bytes) {
  return std::max(0.0, bytes - static_cast<double>(machine.last_cache()));
}

Cost far_cost(const Machine& machine, double bytes) {
  return cost_of(machine, Family::far, 0, beyond_l2(machine, bytes), 0);
}

}  // namespace lamina
