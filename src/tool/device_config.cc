#include "tool/device_config.h"

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/mapped_file.h"

namespace lamina::tool {

std::vector<std::pair<std::string, std::string>> read_device_config(const std::string& path,
                                                                    std::vector<std::string>& others) {
  using Json = nlohmann::ordered_json;
  const auto file = MappedFile::open(path);
  constexpr std::size_t kMost = 1 << 20;  // a megabyte of settings is none
  if (file->size() > kMost)
    fail(ErrorCode::bad_file, "{}: wanted settings as JSON, it has {} bytes", path, file->size());
  const auto* text = reinterpret_cast<const char*>(file->data());
  // The parser recurses into nothing deeper than the text says; settings have two levels.
  int depth = 0;
  for (std::size_t i = 0; i < file->size(); ++i) {
    depth += text[i] == '{' || text[i] == '[' ? 1 : text[i] == '}' || text[i] == ']' ? -1 : 0;
    if (depth > 8) fail(ErrorCode::bad_file, "{}: wanted {{\"CPU\": {{\"KEY\": \"VALUE\"}}}}", path);
  }
  std::vector<std::set<std::string>> keys;
  std::string twice;
  const auto look = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second)
      twice = parsed.get<std::string>();
    return true;
  };
  const auto document = Json::parse(text, text + file->size(), look, false);
  if (!twice.empty()) fail(ErrorCode::bad_file, "{}: \"{}\" is there twice", path, twice);
  if (!document.is_object())
    fail(ErrorCode::bad_file, "{}: wanted {{\"CPU\": {{\"KEY\": \"VALUE\"}}}}", path);
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [device, settings] : document.items()) {
    if (device != "CPU") {
      others.push_back(device);
      continue;
    }
    if (!settings.is_object()) fail(ErrorCode::bad_file, "{}: CPU: wanted keys and values", path);
    for (const auto& [key, value] : settings.items()) {
      if (value.is_structured() || value.is_null())
        fail(ErrorCode::bad_file, "{}: CPU: {}: wanted a value", path, key);
      out.emplace_back(key, value.is_string()    ? value.get<std::string>()
                            : value.is_boolean() ? (value.get<bool>() ? "YES" : "NO")
                                                 : value.dump());
      try {
        Options().set(key, out.back().second);
      } catch (const Error& e) {
        fail(ErrorCode::bad_file, "{}: CPU: {}", path, e.what());
      }
    }
  }
  return out;
}

namespace {

/// By key: what was given; empty where nothing was.
std::map<std::string, std::string> asked_of(const Options& options) {
  std::map<std::string, std::string> out;
  for (const auto& p : properties(options))
    if (!p.read_only) out[p.key] = p.asked;
  return out;
}

}  // namespace

void write_device_config(const std::string& path, const Options& options) {
  const auto asked = asked_of(options);
  const auto all = option_list();
  // Several keys may set the same; the last one that says all of it is the one of today.
  std::map<std::string, std::string> keys;
  for (const auto& option : all) {
    const auto& value = asked.at(option.key);
    if (value.empty()) continue;
    Options back;
    back.set(option.key, value);
    if (asked_of(back).at(option.setting) == asked.at(option.setting)) keys[option.setting] = option.key;
  }
  auto settings = nlohmann::ordered_json::object();
  for (const auto& option : all)
    if (const auto it = keys.find(option.setting); it != keys.end() && it->second == option.key)
      settings[option.key] = asked.at(option.key);
  const nlohmann::ordered_json document{{"CPU", settings}};
  write_file(path, document.dump(4, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace lamina::tool
