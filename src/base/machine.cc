#include "base/machine.h"

#include <cpuid.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/no_destructor.h"
#include "base/topology.h"

namespace lamina {
namespace {

std::optional<std::string> line_of(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  if (!in || !std::getline(in, line)) return std::nullopt;
  return line;
}

/// "48K", "2M", "1024"
std::size_t bytes_of(const std::string& text) {
  char* end = nullptr;
  const auto number = std::strtoull(text.c_str(), &end, 10);
  const std::size_t unit = *end == 'K' ? 1 << 10 : *end == 'M' ? 1 << 20 : 1;
  return number > (1u << 30) ? 0 : number * unit;
}

void read_caches(const std::string& cpus, Machine& m) {
  for (int i = 0; i < 8; ++i) {
    const auto folder = fmt::format("{}cpu0/cache/index{}/", cpus, i);
    const auto level = line_of(folder + "level"), type = line_of(folder + "type"),
               size = line_of(folder + "size");
    if (!level || !type || !size || *type == "Instruction") continue;
    const auto bytes = bytes_of(*size);
    if (bytes == 0) continue;
    if (*level == "1") m.l1 = bytes;
    if (*level == "2") m.l2 = bytes;
    if (*level == "3") m.l3 = bytes;
  }
}

/// Processors that are threads of one core count once; hybrid processors say which are which.
void read_cores(const std::string& root, const std::string& cpus, Machine& m) {
  const auto online = line_of(cpus + "online");
  if (!online) return;
  const auto efficient = line_of(root + "sys/devices/cpu_atom/cpus");
  const auto small = efficient ? cpu_list(*efficient) : std::vector<int>{};
  Machine::Cores large_cores{small.empty() ? "core" : "performance", 0, 1, 1},
      small_cores{"efficient", 0, 1, 0.6};
  std::set<int> seen;
  for (const int cpu : cpu_list(*online)) {
    if (seen.contains(cpu)) continue;
    const auto siblings = line_of(fmt::format("{}cpu{}/topology/thread_siblings_list", cpus, cpu));
    auto threads = siblings ? cpu_list(*siblings) : std::vector<int>{cpu};
    seen.insert(threads.begin(), threads.end());
    auto& kind = std::binary_search(small.begin(), small.end(), cpu) ? small_cores : large_cores;
    ++kind.count;
    kind.threads_per_core = std::max(kind.threads_per_core, static_cast<int>(threads.size()));
  }
  m.cores.clear();
  for (auto* kind : {&large_cores, &small_cores})
    if (kind->count > 0) m.cores.push_back(*kind);
  if (m.cores.empty()) m.cores.push_back({"core", 1, 1, 1});
}

/// The processor's family, by CPUID's vendor, family and model.
std::string_view family_here() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(0, &a, &b, &c, &d) == 0) return "";
  char vendor[12];
  std::memcpy(vendor, &b, 4);
  std::memcpy(vendor + 4, &d, 4);
  std::memcpy(vendor + 8, &c, 4);
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return "";
  const unsigned base = a >> 8 & 15u, family = base == 15 ? base + (a >> 20 & 255u) : base,
                 model = (a >> 4 & 15u) + ((a >> 16 & 15u) << 4);
  return processor_family({vendor, sizeof vendor}, family, model);
}

}  // namespace

Isa Machine::isa() const { return highest_isa(features).value_or(Isa::sse41); }

std::size_t Machine::last_cache() const { return std::max(l2, std::min<std::size_t>(l3, 32 << 20)); }

int Machine::core_count() const {
  int sum = 0;
  for (const auto& c : cores) sum += c.count;
  return sum;
}

static void set_rates(Machine& m) {
  const auto* rates = known_rates(m.processor, m.isa());
  if (rates) m.rates = *rates;
  m.rates_known = rates != nullptr;
}

Verdict multiplies_bf16(const Machine& machine) {
  if (machine.isa() < Isa::avx512 || machine.library < Isa::avx512)
    return Verdict::no("{} has no bf16 instructions", name_of(std::min(machine.isa(), machine.library)));
  if (!machine.features.has(Feature::avx512_bf16) && !machine.features.has(Feature::amx_bf16))
    return Verdict::no("this avx512 has no bf16 instructions");
  return Verdict::yes();
}

Machine limited(Machine m, Isa most) {
  if (m.isa() <= most) return m;
  // What only higher levels have.
  constexpr Features kAbove256{Feature::avx512f,          Feature::avx512bw,    Feature::avx512cd,
                               Feature::avx512dq,         Feature::avx512vl,    Feature::avx512_vnni,
                               Feature::avx512_vpopcntdq, Feature::avx512_bf16, Feature::avx512_fp16,
                               Feature::amx_bf16,         Feature::amx_int8};
  constexpr Features kAbove128{Feature::avx,  Feature::avx2, Feature::fma,     Feature::f16c,
                               Feature::bmi1, Feature::bmi2, Feature::avx_vnni};
  m.features = m.features.without(kAbove256);
  if (most == Isa::sse41) m.features = m.features.without(kAbove128);
  m.library = std::min(m.library, most);
  set_rates(m);
  return m;
}

namespace {

Machine read_processor(const std::string& cpus) {
  Machine m;
  m.name = processor_name();
  m.processor = family_here();
  m.features = cpu_features();
  m.library = m.isa();
  read_caches(cpus, m);
  set_rates(m);
  return m;
}

constexpr const char* kCpus = "sys/devices/system/cpu/";

}  // namespace

Machine read_machine(const std::string& root) {
  auto m = read_processor(root + kCpus);
  read_cores(root, root + kCpus, m);
  if (const auto nodes = line_of(root + "sys/devices/system/node/online"))
    m.numa_nodes = std::max(1, static_cast<int>(cpu_list(*nodes).size()));
  return m;
}

const Machine& this_machine() {
  static const ProcessLifetime machine(
      [] { return limited(read_processor(std::string("/") + kCpus), effective_isa()); });
  return *machine;
}

Machine whole_machine() { return limited(read_machine(), effective_isa()); }

}  // namespace lamina
