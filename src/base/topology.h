#pragma once
/// The processors that this process may use, as Linux shows them below a root folder.
#include <optional>
#include <string>
#include <vector>

namespace lamina {

/// A logical processor.
struct Cpu {
  int number = 0;
  int package = 0, core = 0;  ///< a core is known by both
  int node = 0;               ///< of memory
  bool efficient = false;     ///< of a hybrid processor

  friend bool operator==(const Cpu&, const Cpu&) = default;
};

struct Topology {
  std::vector<Cpu> cpus;        ///< processors that the process may use, by number; never empty
  std::optional<double> quota;  ///< processors' worth of time, the tightest of all groups
  /// Number of sockets of `cpus`.
  int sockets() const;
  int nodes() const;
  int cores() const;
  /// The quota rounded down, at least 1; without a quota all.
  int limit() const;
};

/// Online processors within the affinity mask and the cpusets of the process' group and all above it (cgroups
/// v1 and v2). What is missing is not known, and nothing fails for it. Read anew at each call.
Topology read_topology(const std::string& root = "/");

/// The processors that the calling thread may run on; none: not known.
std::vector<int> affinity_here();

/// "0-3,8": ascending, of processors that Linux can have; what does not read like it ends the list.
std::vector<int> cpu_list(const std::string& text);
std::string cpu_list(std::vector<int> cpus);

}  // namespace lamina
