/// lamina version.
#include <nlohmann/json.hpp>

#include "lamina/listings.h"
#include "tool/verb_list.h"

namespace lamina::tool {
namespace {

struct VersionOptions {
  Common common;
  bool verbose = false, properties = false;
  std::string root = "/";
};

/// What a model would get, on this machine or on the one below a root folder.
int show_properties(const VersionOptions& o) {
  const auto& c = o.common;
  const auto text = list_settings(c.options(), o.root);
  const auto listing = nlohmann::ordered_json::parse(text);
  for (const auto& [key, p] : listing.at("properties").items()) {
    const std::string value = p.at("value"), asked = p.at("asked"), reason = p.at("reason");
    c.say("{:34} {}{}{}", key, value, asked.empty() || asked == value ? "" : "  (asked: " + asked + ")",
          reason.empty() ? "" : "  - " + reason);
  }
  std::size_t number = 0;
  for (const auto& stream : listing.at("streams"))
    c.say("stream {:<4} node {:<3} processors {}", number++, stream.at("node").get<int>(),
          fmt::join(stream.at("cpus").get<std::vector<int>>(), " "));
  write_json(c, nlohmann::json::parse(text));
  return 0;
}

void say_details(const Common& c, const nlohmann::json& j) {
  const auto string_at = [](const nlohmann::json& of, const char* key) {
    return of.at(key).get<std::string>();
  };
  c.say("oneDNN       {}", string_at(j, "onednn"));
  c.say("oneTBB       {}", string_at(j, "tbb"));
  c.say("processor    {}", string_at(j, "processor"));
  const auto family = string_at(j.at("machine"), "processor");
  c.say("family       {}{}", family.empty() ? "not known" : family,
        j.at("rates_known") ? "" : ": kernels are estimated with the rates of Sapphire Rapids");
  const auto features = string_at(j, "features");
  c.say("instructions {}{}", string_at(j, "isa"), features.empty() ? "" : " (" + features + ")");
  c.say("threads      {} of {} processors (affinity mask and container limits)", j.at("threads").get<int>(),
        j.at("processors").get<unsigned>());
  c.say("memory       {}", human_bytes(j.at("memory_bytes").get<double>()));
}

int run(const VersionOptions& o) {
  if (o.properties) return show_properties(o);
  const auto build = nlohmann::json::parse(describe_build());
  o.common.say("{}", version());
  if (o.verbose) say_details(o.common, build);
  write_json(o.common, build);
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
