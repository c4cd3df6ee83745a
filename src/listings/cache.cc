/// Folders of compiled models.
#include "api/at_work.h"
#include "base/guard.h"
#include "base/json_text.h"
#include "lamina/listings.h"
#include "saved/folder.h"

namespace lamina {
namespace {

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

}  // namespace

std::string list_cache(const std::string& folder) {
  return guarded("list_cache", [&] {
    const AtWork here;
    auto entries = nlohmann::json::array();
    for (const auto& e : cache_entries(folder))
      if (e.magic) entries.push_back(json_of(e));
    return json_text(nlohmann::json{{"entries", entries}});
  });
}

std::string verify_cache(const std::string& folder) {
  return guarded("verify_cache", [&] {
    const AtWork here;
    auto damaged = nlohmann::json::array(), unusable = nlohmann::json::array();
    const auto entries = verified_entries(folder);
    for (const auto& e : entries) {
      if (e.state == CacheEntry::State::good) continue;
      const nlohmann::json row{{"name", e.name}, {"wrong", e.wrong}};
      unusable.push_back(row);
      if (e.state == CacheEntry::State::damaged) damaged.push_back(row);
    }
    return json_text(
        nlohmann::json{{"entries", entries.size()}, {"damaged", damaged}, {"unusable", unusable}});
  });
}

std::string prune_cache(const std::string& folder, std::uint64_t most) {
  return guarded("prune_cache", [&] {
    const AtWork here;
    auto removed = nlohmann::json::array();
    const auto pruned = prune_entries(folder, most);
    for (const auto& e : pruned.gone) removed.push_back(json_of(e));
    return json_text(nlohmann::json{{"removed", removed}, {"trouble", pruned.trouble}});
  });
}

}  // namespace lamina
