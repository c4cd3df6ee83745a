/// lamina version.
#include <tbb/version.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/cpu.h"
#include "base/machine.h"
#include "kernels/versions.h"
#include "tool/machine_file.h"
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

int run(const Common& c, bool verbose) {
  const nlohmann::json j{{"lamina", version().substr(7)},
                         {"onednn", onednn_version()},
                         {"tbb", fmt::format("{}.{}", TBB_VERSION_MAJOR, TBB_VERSION_MINOR)},
                         {"processor", processor_name()},
                         {"isa", name_of(native_isa())},
                         {"features", processor_features()},
                         {"processors", std::thread::hardware_concurrency()},
                         {"threads", available_threads()},
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
    c.say("instructions {} ({})", j["isa"].get<std::string>(), j["features"].get<std::string>());
    c.say("threads      {} of {} processors (affinity mask and container limits)", available_threads(),
          std::thread::hardware_concurrency());
    c.say("memory       {}", human_bytes(total_memory()));
  }
  write_json(c, j);
  return 0;
}

}  // namespace

Verb setup_version(OptionSet& options) {
  auto c = std::make_shared<Common>();
  auto verbose = std::make_shared<bool>(false);
  options.flag("--verbose", *verbose, "Libraries, processor, limits");
  add_json(options, *c);
  return [=] { return run(*c, *verbose); };
}

}  // namespace lamina::tool
