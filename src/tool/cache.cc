/// lamina cache: what is in a folder of compiled models.
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "lamina/listings.h"
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

std::string string_at(const nlohmann::json& row, const char* key) { return row.at(key).get<std::string>(); }

/// "NAME.lamina    12 MB"
std::string entry_text(const nlohmann::json& e) {
  return fmt::format("{}  {:>9}", string_at(e, "name"), human_bytes(e.at("bytes").get<double>()));
}

double bytes_of(const nlohmann::json& entries) {
  double sum = 0;
  for (const auto& e : entries) sum += e.at("bytes").get<double>();
  return sum;
}

int list_entries(const CacheOptions& o) {
  const auto listing = nlohmann::json::parse(list_cache(o.folder));
  const auto& entries = listing.at("entries");
  for (const auto& e : entries) {
    const auto model =
        fmt::format("{}({})", one_line(string_at(e, "model"), 60), one_line(string_at(e, "inputs"), 100));
    const auto state = string_at(e, "state");
    o.common.say("{}  {:<6}  used {}{}{}", entry_text(e), string_at(e, "isa"), date_of(e.at("used")),
                 model == "()" ? "" : "  " + model, state.empty() ? "" : "  " + state);
  }
  o.common.say("{} entries, {}", entries.size(), human_bytes(bytes_of(entries)));
  write_json(o.common, listing);
  return 0;
}

int verify(const CacheOptions& o) {
  const auto listing = nlohmann::json::parse(verify_cache(o.folder));
  for (const auto& e : listing.at("unusable")) o.common.say("{}", string_at(e, "wrong"));
  const auto damaged = listing.at("damaged").size();
  o.common.say("{} entries, {} damaged", listing.at("entries").get<std::size_t>(), damaged);
  write_json(o.common, listing);
  return damaged == 0 ? 0 : 1;
}

int prune(const CacheOptions& o) {
  const auto listing = nlohmann::json::parse(prune_cache(o.folder, std::uint64_t{o.keep} << 20));
  const auto& removed = listing.at("removed");
  for (const auto& e : removed) o.common.say("{}  used {}", entry_text(e), date_of(e.at("used")));
  o.common.say("{} entries removed, {}", removed.size(), human_bytes(bytes_of(removed)));
  write_json(o.common, listing);
  if (const auto trouble = string_at(listing, "trouble"); !trouble.empty())
    fail(ErrorCode::bad_file, "{}", trouble);
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
