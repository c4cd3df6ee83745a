/// lamina cache: what is in a folder of compiled models.
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "saved/folder.h"
#include "tool/verb_list.h"

namespace lamina::tool {
namespace {

struct CacheOptions {
  Common common;
  std::string action, folder;
  std::size_t keep = 4096;  // MiB
};

std::string date_of(std::int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  char text[32];
  if (!gmtime_r(&time, &parts) || std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &parts) == 0)
    return "?";
  return text;
}

/// Why the entry would not be used; empty if it would.
std::string state_of(const CacheEntry& e) {
  if (e.state == CacheEntry::State::good) return "";
  if (e.state == CacheEntry::State::damaged) return "damaged";
  return e.engine.empty() ? "of another version" : "of lamina " + e.engine;
}

nlohmann::json json_of(const CacheEntry& e) {
  return {{"name", e.name}, {"bytes", e.bytes},     {"used", e.used},        {"engine", e.engine},
          {"isa", e.needs}, {"state", state_of(e)}, {"model", e.model.name}, {"inputs", e.model.inputs}};
}

int list_entries(const CacheOptions& o) {
  auto entries = nlohmann::json::array();
  double sum = 0;
  for (const auto& e : cache_entries(o.folder)) {
    if (!e.magic) continue;
    const auto state = state_of(e);
    const auto model = fmt::format("{}({})", one_line(e.model.name, 60), one_line(e.model.inputs, 100));
    o.common.say("{}  {:>9}  {:<6}  used {}{}{}", e.name, human_bytes(static_cast<double>(e.bytes)), e.needs,
                 date_of(e.used), model == "()" ? "" : "  " + model, state.empty() ? "" : "  " + state);
    entries.push_back(json_of(e));
    sum += static_cast<double>(e.bytes);
  }
  o.common.say("{} entries, {}", entries.size(), human_bytes(sum));
  write_json(o.common, {{"entries", entries}});
  return 0;
}

int verify(const CacheOptions& o) {
  auto damaged = nlohmann::json::array();
  const auto entries = verified_entries(o.folder);
  for (const auto& e : entries) {
    if (e.state == CacheEntry::State::good) continue;
    o.common.say("{}", e.wrong);
    if (e.state == CacheEntry::State::damaged) damaged.push_back({{"name", e.name}, {"wrong", e.wrong}});
  }
  o.common.say("{} entries, {} damaged", entries.size(), damaged.size());
  write_json(o.common, {{"entries", entries.size()}, {"damaged", damaged}});
  return damaged.empty() ? 0 : 1;
}

int prune(const CacheOptions& o) {
  auto removed = nlohmann::json::array();
  double sum = 0;
  const auto pruned = prune_cache(o.folder, std::uint64_t{o.keep} << 20);
  for (const auto& e : pruned.gone) {
    o.common.say("{}  {:>9}  used {}", e.name, human_bytes(static_cast<double>(e.bytes)), date_of(e.used));
    removed.push_back(json_of(e));
    sum += static_cast<double>(e.bytes);
  }
  o.common.say("{} entries removed, {}", removed.size(), human_bytes(sum));
  write_json(o.common, {{"removed", removed}});
  if (!pruned.trouble.empty()) fail(ErrorCode::bad_file, "{}", pruned.trouble);
  return 0;
}

}  // namespace

Verb setup_cache(OptionSet& options) {
  auto o = std::make_shared<CacheOptions>();
  options
      .choice(
          "action", o->action, {"list", "verify", "prune"}, "ACTION",
          "list: show all entries; verify: check them for damage; prune: remove the least recently used ones")
      .required();
  options.text("folder", o->folder, "DIR", "The folder").required();
  options.number<std::size_t>("--keep", o->keep, 0, 1048576, "MIB",
                              "prune: MiB that the folder may keep (4096)");
  options.flag("--quiet", o->common.quiet, "Print nothing");
  add_json(options, o->common);
  return [o] {
    if (o->action == "list") return list_entries(*o);
    return o->action == "verify" ? verify(*o) : prune(*o);
  };
}

}  // namespace lamina::tool
