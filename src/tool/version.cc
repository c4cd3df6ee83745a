/// lamina version.
#include <tbb/version.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "api/properties.h"
#include "api/resolve.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/machine.h"
#include "base/topology.h"
#include "explain/machine_file.h"
#include "kernels/versions.h"
#include "tool/properties.h"
#include "tool/verb_list.h"

namespace lamina::tool {
namespace {

double total_memory() {
  std::ifstream in("/proc/meminfo");
  std::string word;
  double kb = 0;
  if (in >> word >> kb) return kb * 1024;
  return 0;
}

struct VersionOptions {
  Common common;
  bool verbose = false, properties = false;
  std::string root = "/";
};

std::vector<int> numbers_of(const Topology& t) {
  std::vector<int> out;
  for (const auto& cpu : t.cpus) out.push_back(cpu.number);
  return out;
}

/// What a model would get, on this machine or on the one below a root folder.
int show_properties(const VersionOptions& o) {
  if (!std::filesystem::is_directory(o.root))
    throw Error(ErrorCode::bad_file, fmt::format("--system-root {}: wanted a folder", o.root));
  const auto& c = o.common;
  const auto topology = read_topology(o.root);
  const auto options = c.options();
  const auto taken =
      o.root == "/" ? ProcessorLocks::here().taken(topology.cpus.back().number + 1) : std::set<int>();
  const auto settings = settings_for(options, topology, taken);
  const auto& placement = settings.placement;
  const auto list = list_properties(settings, topology);
  nlohmann::json streams = nlohmann::json::array();
  for (const auto& stream : placement.streams)
    streams.push_back({{"node", stream.node}, {"cpus", stream.cpus}});
  nlohmann::json machine{{"sockets", topology.sockets()},
                         {"nodes", topology.nodes()},
                         {"cores", topology.cores()},
                         {"processors", topology.cpus.size()},
                         {"allowed", cpu_list(numbers_of(topology))},
                         {"quota", nullptr}};
  if (topology.quota) machine["quota"] = *topology.quota;
  const auto binding = find_property(list, "CPU_BIND_THREAD").value;
  for (const auto& warning : placement.warnings) options.log(LogLevel::warning, warning);
  for (const auto& p : list)
    c.say("{:34} {}{}{}", p.key, p.value,
          p.asked.empty() || p.asked == p.value ? "" : fmt::format("  (asked: {})", p.asked),
          p.reason.empty() ? "" : "  - " + p.reason);
  for (std::size_t s = 0; s < placement.streams.size(); ++s)
    c.say("stream {:<4} node {:<3} processors {}", s, placement.streams[s].node,
          fmt::join(placement.streams[s].cpus, " "));
  write_json(c, {{"properties", to_json(list)},
                 {"machine", std::move(machine)},
                 {"streams", std::move(streams)},
                 {"threads_per_stream", placement.threads_each},
                 {"binding", binding}});
  return 0;
}

int run(const VersionOptions& o) {
  if (o.properties) return show_properties(o);
  const auto& c = o.common;
  const bool verbose = o.verbose;
  const int usable = std::min(read_topology().limit(), static_cast<int>(std::thread::hardware_concurrency()));
  const nlohmann::json j{{"lamina", version().substr(7)},
                         {"onednn", onednn_version()},
                         {"tbb", fmt::format("{}.{}", TBB_VERSION_MAJOR, TBB_VERSION_MINOR)},
                         {"processor", processor_name()},
                         {"isa", name_of(native_isa())},
                         {"features", processor_features()},
                         {"processors", std::thread::hardware_concurrency()},
                         {"threads", usable},
                         {"memory_bytes", total_memory()},
                         {"machine", to_json(whole_machine())}};
  c.say("{}", version());
  if (verbose) {
    c.say("oneDNN       {}", j["onednn"].get<std::string>());
    c.say("oneTBB       {}", j["tbb"].get<std::string>());
    c.say("processor    {}", j["processor"].get<std::string>());
    const auto& family = this_machine().processor;
    c.say("family       {}{}", family.empty() ? "not known" : family,
          this_machine().rates_known ? "" : ": kernels are estimated with the rates of Sapphire Rapids");
    const auto features = j["features"].get<std::string>();
    c.say("instructions {}{}", j["isa"].get<std::string>(),
          features.empty() ? "" : fmt::format(" ({})", features));
    c.say("threads      {} of {} processors (affinity mask and container limits)", usable,
          std::thread::hardware_concurrency());
    c.say("memory       {}", human_bytes(total_memory()));
  }
  write_json(c, j);
  return 0;
}

}  // namespace

Verb setup_version(OptionSet& options) {
  auto o = std::make_shared<VersionOptions>();
  options.flag("--verbose", o->verbose, "Libraries, processor, limits");
  const auto properties =
      options.flag("--properties", o->properties, "Show the settings that a model would get here, and why");
  options.list("--set", o->common.set, "KEY=VALUE",
               "With --properties: a setting; may be given several times");
  options.text("--system-root", o->root, "DIR",
               "With --properties: read the machine from /proc and /sys below this folder (/)");
  add_json(options, o->common);
  return [=] {
    if (!properties.given() && (!o->common.set.empty() || o->root != "/"))
      throw UsageError("--set and --system-root need --properties");
    return run(*o);
  };
}

}  // namespace lamina::tool
