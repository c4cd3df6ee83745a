#include "base/cpu.h"

#include <cpuid.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <mutex>
#include <optional>
#include <sstream>

#include "base/cpu_features.h"
#include "base/error.h"

namespace lamina {
namespace {

struct Limit {
  std::mutex mutex;
  std::optional<Isa> limit;
  bool fixed = false;
};

Limit& the_limit() {
  static Limit limit;
  return limit;
}

std::optional<Isa> isa_named(std::string_view name) {
  if (name == "sse41") return Isa::sse41;
  if (name == "avx2") return Isa::avx2;
  if (name == "avx512") return Isa::avx512;
  if (name == "native") return native_isa();
  return std::nullopt;
}

std::optional<std::string> read_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  if (!in || !std::getline(in, line)) return std::nullopt;
  return line;
}

/// Processors allowed by "max period" of one cgroup folder.
std::optional<double> quota_of(const std::string& folder) {
  if (auto line = read_line(folder + "/cpu.max")) {
    std::istringstream in(*line);
    std::string quota;
    double period = 0;
    if (in >> quota >> period && quota != "max" && period > 0) return std::stod(quota) / period;
    return std::nullopt;
  }
  const auto quota = read_line(folder + "/cpu.cfs_quota_us"),
             period = read_line(folder + "/cpu.cfs_period_us");
  if (!quota || !period) return std::nullopt;
  const double q = std::atof(quota->c_str()), p = std::atof(period->c_str());
  if (q <= 0 || p <= 0) return std::nullopt;
  return q / p;
}

/// The tightest quota of this process's cgroup and all groups above it.
std::optional<double> cgroup_quota(const std::string& root) {
  std::optional<double> least;
  const auto consider = [&](const std::string& base, std::string group) {
    while (true) {
      if (auto q = quota_of(base + group); q && (!least || *q < *least)) least = q;
      if (group.empty() || group == "/") break;
      group.erase(group.rfind('/'));
    }
  };
  std::ifstream in(root + "proc/self/cgroup");
  std::string line;
  while (std::getline(in, line)) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1),
                      group = line.substr(second + 1);
    if (controllers.empty())
      consider(root + "sys/fs/cgroup", group);
    else if (("," + controllers + ",").find(",cpu,") != std::string::npos)
      consider(root + "sys/fs/cgroup/" + controllers, group);
  }
  // Inside a container the group's own folder is often mounted as the root.
  consider(root + "sys/fs/cgroup", "");
  consider(root + "sys/fs/cgroup/cpu", "");
  return least;
}

/// What x86-64-v2 has and this does not: "sse4_2, popcnt".
std::string lacking(Features features) {
  std::string out;
  for (std::size_t i = 0; i < static_cast<std::size_t>(Feature::count); ++i)
    if (const auto f = static_cast<Feature>(i); needed_by(Isa::sse41).without(features).has(f))
      out += (out.empty() ? "" : ", ") + std::string(name_of(f));
  return out;
}

}  // namespace

std::string_view name_of(Isa isa) {
  return isa == Isa::sse41 ? "sse41" : isa == Isa::avx2 ? "avx2" : "avx512";
}

Isa native_isa() {
  const auto features = cpu_features();
  const auto isa = highest_isa(features);
  if (!isa) fail(ErrorCode::unsupported, "this processor lacks {}: wanted x86-64-v2", lacking(features));
  return *isa;
}

Isa effective_isa() {
  auto& l = the_limit();
  std::lock_guard lock(l.mutex);
  l.fixed = true;
  return l.limit ? std::min(*l.limit, native_isa()) : native_isa();
}

void limit_isa(std::string_view name, const std::function<void(Isa)>& before) {
  const auto isa = isa_named(name);
  if (!isa) fail(ErrorCode::bad_option, "max isa \"{}\": wanted sse41, avx2, avx512 or native", name);
  auto& l = the_limit();
  std::lock_guard lock(l.mutex);
  const Isa now = l.limit ? std::min(*l.limit, native_isa()) : native_isa();
  if (l.fixed && std::min(*isa, native_isa()) != now)
    fail(ErrorCode::bad_option, "max isa \"{}\": this process already compiled a model for {}", name,
         name_of(now));
  if (before) before(std::min(*isa, native_isa()));
  l.limit = *isa;
}

std::string processor_name() {
  unsigned words[12] = {};
  unsigned highest = __get_cpuid_max(0x80000000u, nullptr);
  if (highest < 0x80000004u) return "unknown processor";
  for (unsigned i = 0; i < 3; ++i)
    __get_cpuid(0x80000002u + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2], &words[4 * i + 3]);
  std::string name(reinterpret_cast<const char*>(words), sizeof(words));
  name = name.substr(0, name.find('\0'));
  name.erase(0, name.find_first_not_of(' '));
  name.erase(name.find_last_not_of(' ') + 1);
  return name;
}

std::string processor_features() {
  std::string out;
  for (const auto f : {Feature::avx512_vnni, Feature::amx_bf16, Feature::amx_int8, Feature::avx512_fp16,
                       Feature::avx512_bf16, Feature::avx_vnni})
    if (cpu_features().has(f)) out += (out.empty() ? "" : " ") + std::string(name_of(f));
  return out;
}

int available_threads(const std::string& root) {
  cpu_set_t set;
  CPU_ZERO(&set);
  int count = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
  if (const auto quota = cgroup_quota(root)) count = std::min(count, static_cast<int>(std::ceil(*quota)));
  return std::max(count, 1);
}

}  // namespace lamina
