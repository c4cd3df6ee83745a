#include "base/topology.h"

#include <dirent.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <utility>

#include "base/control_groups.h"
#include "base/error.h"
#include "base/system_file.h"

namespace lamina {
namespace {

constexpr int kMostProcessors = 8192;  // of Linux
constexpr int kOwnCore = 1 << 24;      // above what core_id is

std::optional<double> parsed_number(const std::string& text) {
  double value = 0;
  const auto* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || at == text.data() || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// Linux writes -1 for an unknown id.
std::optional<int> id_in(const std::string& path) {
  const auto line = system_line(path);
  if (!line) return std::nullopt;
  int value = 0;
  const auto error = std::from_chars(line->data(), line->data() + line->size(), value).ec;
  if (error != std::errc() || value < 0 || value >= kOwnCore) return std::nullopt;
  return value;
}

std::optional<double> quota_of(const ControlGroups& groups) {
  std::optional<double> least;
  const auto take = [&](std::optional<double> quota, std::optional<double> period) {
    if (!quota || !period || *quota <= 0 || *period <= 0) return;
    least = least ? std::min(*least, *quota / *period) : *quota / *period;
  };
  groups.unified([&](const std::string& folder) {
    const auto line = system_line(folder + "/cpu.max");
    std::string quota, period;
    if (line && std::istringstream(*line) >> quota >> period)
      take(parsed_number(quota), parsed_number(period));
  });
  groups.controller("cpu", {"cpu", "cpu,cpuacct"}, [&](const std::string& folder) {
    const auto quota = system_line(folder + "/cpu.cfs_quota_us"),
               period = system_line(folder + "/cpu.cfs_period_us");
    if (quota && period) take(parsed_number(*quota), parsed_number(*period));
  });
  return least;
}

/// The processors that all lists have; not known before the first list.
class Common {
 public:
  void keep_only(const std::vector<int>& these) {
    if (these.empty()) return;  // an empty cpuset file: that of the group above holds
    if (!std::exchange(known_, true)) cpus_.insert(these.begin(), these.end());
    std::erase_if(cpus_, [&](int cpu) { return !std::binary_search(these.begin(), these.end(), cpu); });
  }
  void keep_only(const std::optional<std::string>& list) {
    if (list) keep_only(cpu_list(*list));
  }
  bool known() const { return known_; }
  std::set<int> take() { return std::move(cpus_); }

 private:
  bool known_ = false;
  std::set<int> cpus_;
};

/// The list behind "Cpus_allowed_list:" in the status of a process.
std::optional<std::string> status_mask(const std::string& root) {
  const std::string key = "Cpus_allowed_list:";
  for (const auto& line : system_lines(root + "proc/self/status"))
    if (line.starts_with(key))
      return line.substr(std::min(line.find_first_not_of(" \t", key.size()), line.size()));
  return std::nullopt;
}

/// The N of all entries BEGINNINGn of a folder, ascending.
std::vector<int> numbered(const std::string& path, std::string_view beginning) {
  std::vector<int> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.c_str()), closedir);
  while (const auto* entry = folder ? readdir(folder.get()) : nullptr) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with(beginning)) continue;
    const auto digits = name.substr(beginning.size());
    int number = 0;
    const auto [at, bad] = std::from_chars(digits.begin(), digits.end(), number);
    if (bad == std::errc() && at == digits.end() && number >= 0) out.push_back(number);
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::set<int> allowed_cpus(const std::string& root, const ControlGroups& groups) {
  Common cpus;
  cpus.keep_only(system_line(root + "sys/devices/system/cpu/online"));
  if (root == "/")
    cpus.keep_only(affinity_here());
  else
    cpus.keep_only(status_mask(root));
  groups.unified(
      [&](const std::string& folder) { cpus.keep_only(system_line(folder + "/cpuset.cpus.effective")); });
  groups.controller("cpuset", {"cpuset"}, [&](const std::string& folder) {
    cpus.keep_only(system_line(folder + "/cpuset.effective_cpus"));
  });
  if (!cpus.known()) {
    auto folders = numbered(root + "sys/devices/system/cpu", "cpu");
    std::erase_if(folders, [](int cpu) { return cpu >= kMostProcessors; });
    cpus.keep_only(folders);
  }
  auto out = cpus.take();
  if (out.empty()) out.insert(0);
  return out;
}

/// The node of each processor; 0 where no node lists it.
std::map<int, int> nodes_of(const std::string& root) {
  std::map<int, int> out;
  const auto path = root + "sys/devices/system/node";
  for (const int node : numbered(path, "node"))
    if (const auto list = system_line(fmt::format("{}/node{}/cpulist", path, node)))
      for (const int cpu : cpu_list(*list)) out.try_emplace(cpu, node);
  return out;
}

template <class Key>
int different(const std::vector<Cpu>& cpus, const Key& key) {
  std::set<decltype(key(cpus[0]))> seen;
  for (const auto& cpu : cpus) seen.insert(key(cpu));
  return static_cast<int>(seen.size());
}

}  // namespace

std::vector<int> affinity_here() {
  std::vector<int> out;
  // The kernel refuses sets that are smaller than its own.
  for (int room = 1024; room <= kMostProcessors; room *= 2) {
    const auto free_set = [](cpu_set_t* set) { CPU_FREE(set); };
    const std::unique_ptr<cpu_set_t, decltype(free_set)> set(CPU_ALLOC(static_cast<std::size_t>(room)));
    if (!set) break;
    const auto bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(room));
    CPU_ZERO_S(bytes, set.get());
    const bool read = sched_getaffinity(0, bytes, set.get()) == 0;
    for (int cpu = 0; read && cpu < room; ++cpu)
      if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, set.get())) out.push_back(cpu);
    if (read) break;
  }
  return out;
}

std::vector<int> cpu_list(const std::string& text) {
  std::vector<bool> there;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    int first = 0;
    auto read = std::from_chars(at, end, first);
    if (read.ec != std::errc() || first < 0) break;
    int last = first;
    if (read.ptr != end && *read.ptr == '-') {
      read = std::from_chars(read.ptr + 1, end, last);
      if (read.ec != std::errc()) break;
    }
    last = std::min(last, kMostProcessors - 1);
    if (last >= static_cast<int>(there.size())) there.resize(static_cast<std::size_t>(last) + 1);
    if (first <= last) std::fill(there.begin() + first, there.begin() + last + 1, true);
    if (read.ptr == end || *read.ptr != ',') break;
    at = read.ptr + 1;
  }
  std::vector<int> out;
  for (std::size_t cpu = 0; cpu < there.size(); ++cpu)
    if (there[cpu]) out.push_back(static_cast<int>(cpu));
  return out;
}

std::string cpu_list(std::vector<int> cpus) {
  std::sort(cpus.begin(), cpus.end());
  std::string out;
  for (std::size_t i = 0; i < cpus.size();) {
    auto last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] <= cpus[last] + 1) ++last;
    out += (out.empty() ? "" : ",") + std::to_string(cpus[i]);
    if (cpus[last] > cpus[i]) out += "-" + std::to_string(cpus[last]);
    i = last + 1;
  }
  return out;
}

int Topology::sockets() const {
  return different(cpus, [](const Cpu& c) { return c.package; });
}
int Topology::nodes() const {
  return different(cpus, [](const Cpu& c) { return c.node; });
}
int Topology::cores() const {
  return different(cpus, [](const Cpu& c) { return std::pair(c.package, c.core); });
}
int Topology::limit() const {
  const auto all = static_cast<int>(cpus.size());
  return quota && *quota < all ? std::max(1, static_cast<int>(*quota)) : all;
}

Topology read_topology(const std::string& root_folder) {
  const auto root = root_folder.ends_with('/') ? root_folder : root_folder + "/";
  const ControlGroups groups(root);
  Topology out;
  out.quota = quota_of(groups);
  const auto nodes = nodes_of(root);
  const auto efficient = system_line(root + "sys/devices/cpu_atom/cpus");
  const auto small = efficient ? cpu_list(*efficient) : std::vector<int>{};
  for (const int number : allowed_cpus(root, groups)) {
    const auto folder = fmt::format("{}sys/devices/system/cpu/cpu{}/topology/", root, number);
    const auto package = id_in(folder + "physical_package_id"), core = id_in(folder + "core_id");
    const auto node = nodes.find(number);
    // Without these files a processor counts as a core of its own, in the order of their numbers.
    out.cpus.push_back({number, package.value_or(0), core.value_or(kOwnCore + number),
                        node == nodes.end() ? 0 : node->second,
                        std::binary_search(small.begin(), small.end(), number)});
  }
  return out;
}

}  // namespace lamina
