/// The build and this processor, and the settings that a model would get.
#include <tbb/version.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "api/at_work.h"
#include "api/properties.h"
#include "api/resolve.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/guard.h"
#include "base/json_text.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/topology.h"
#include "explain/machine_file.h"
#include "kernels/versions.h"
#include "lamina/listings.h"

namespace lamina {
namespace {

/// Bytes; 0: not known.
double total_memory() {
  std::ifstream in("/proc/meminfo");
  std::string word;
  double kb = 0;
  if (in >> word >> kb) return kb * 1024;
  return 0;
}

nlohmann::ordered_json machine_json(const Topology& topology) {
  std::vector<int> allowed;
  for (const auto& cpu : topology.cpus) allowed.push_back(cpu.number);
  nlohmann::ordered_json out{{"sockets", topology.sockets()}, {"nodes", topology.nodes()},
                             {"cores", topology.cores()},     {"processors", topology.cpus.size()},
                             {"allowed", cpu_list(allowed)},  {"quota", nullptr}};
  if (topology.quota) out["quota"] = *topology.quota;
  return out;
}

/// By key, in the order in which people read them.
nlohmann::ordered_json properties_json(const std::vector<Property>& properties) {
  auto out = nlohmann::ordered_json::object();
  for (const auto& p : properties)
    out[p.key] = {{"value", p.value}, {"asked", p.asked}, {"reason", p.reason}, {"read_only", p.read_only}};
  return out;
}

}  // namespace

std::string describe_build() {
  return guarded("describe_build", [] {
    const AtWork here;
    const int usable =
        std::min(read_topology().limit(), static_cast<int>(std::thread::hardware_concurrency()));
    return json_text(nlohmann::json{{"lamina", version().substr(7)},
                                    {"onednn", onednn_version()},
                                    {"tbb", fmt::format("{}.{}", TBB_VERSION_MAJOR, TBB_VERSION_MINOR)},
                                    {"processor", processor_name()},
                                    {"isa", name_of(native_isa())},
                                    {"features", processor_features()},
                                    {"rates_known", this_machine().rates_known},
                                    {"processors", std::thread::hardware_concurrency()},
                                    {"threads", usable},
                                    {"memory_bytes", total_memory()},
                                    {"machine", to_json(whole_machine())}});
  });
}

std::string list_settings(const Options& options, const std::string& system_root) {
  return guarded("list_settings", [&] {
    const AtWork here;
    if (!std::filesystem::is_directory(system_root))
      fail(ErrorCode::bad_file, "system root {}: wanted a folder", system_root);
    const auto topology = read_topology(system_root);
    const auto taken =
        system_root == "/" ? ProcessorLocks::here().taken(topology.cpus.back().number + 1) : std::set<int>();
    const auto settings = settings_for(options, topology, taken);
    const auto& placement = settings.placement;
    const auto list = list_properties(settings, topology);
    auto streams = nlohmann::ordered_json::array();
    for (const auto& stream : placement.streams)
      streams.push_back({{"node", stream.node}, {"cpus", stream.cpus}});
    const Logger log(options.log);
    for (const auto& warning : placement.warnings) log.warning("{}", warning);
    return json_text(nlohmann::ordered_json{{"properties", properties_json(list)},
                                            {"machine", machine_json(topology)},
                                            {"streams", std::move(streams)},
                                            {"threads_per_stream", placement.threads_each},
                                            {"binding", find_property(list, "CPU_BIND_THREAD").value}});
  });
}

}  // namespace lamina
