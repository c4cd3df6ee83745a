#include "api/properties.h"

#include <algorithm>
#include <span>

#include "api/at_work.h"
#include "api/option_values.h"
#include "api/resolve.h"
#include "base/cpu_features.h"
#include "base/error.h"
#include "base/guard.h"
#include "base/nearest.h"
#include "base/no_destructor.h"
#include "base/option_words.h"
#include "base/parallel.h"
#include "base/words.h"

namespace lamina {
namespace {

/// Facts of the device, then those of a compiled model.
constexpr std::string_view kDevice[] = {"SUPPORTED_PROPERTIES",  "SUPPORTED_METRICS",
                                        "SUPPORTED_CONFIG_KEYS", "AVAILABLE_DEVICES",
                                        "FULL_DEVICE_NAME",      "DEVICE_ARCHITECTURE",
                                        "DEVICE_TYPE",           "OPTIMIZATION_CAPABILITIES",
                                        "RANGE_FOR_STREAMS",     "RANGE_FOR_ASYNC_INFER_REQUESTS"};
constexpr std::string_view kModel[] = {"OPTIMAL_NUMBER_OF_INFER_REQUESTS", "NETWORK_NAME",
                                       "EXECUTION_DEVICES", "LOADED_FROM_CACHE"};

bool is_read_only(std::string_view key) {
  return std::ranges::find(kDevice, key) != std::end(kDevice) ||
         std::ranges::find(kModel, key) != std::end(kModel);
}

std::vector<std::string> config_keys() {
  std::vector<std::string> out;
  for (const auto& row : option_rows()) out.push_back(row.info.key);
  return out;
}

std::string words(const std::vector<std::string>& list) { return fmt::format("{}", fmt::join(list, " ")); }

std::string fact(const std::string& key, const Settings& s, const Topology& topology,
                 const ModelFacts* model) {
  if (key == "SUPPORTED_CONFIG_KEYS") return words(config_keys());
  if (key == "SUPPORTED_METRICS" || key == "SUPPORTED_PROPERTIES") {
    std::vector<std::string> keys(std::begin(kDevice), std::end(kDevice));
    if (model != nullptr) keys.insert(keys.end(), std::begin(kModel), std::end(kModel));
    const auto settings = config_keys();
    if (key == "SUPPORTED_PROPERTIES") keys.insert(keys.end(), settings.begin(), settings.end());
    return words(keys);
  }
  if (key == "AVAILABLE_DEVICES" || key == "EXECUTION_DEVICES") return "CPU";
  if (key == "FULL_DEVICE_NAME") return processor_name();
  if (key == "DEVICE_ARCHITECTURE") return "intel64";
  if (key == "DEVICE_TYPE") return "INTEGRATED";
  if (key == "OPTIMIZATION_CAPABILITIES")
    return multiplies_bf16(read_machine()) ? "FP32 BF16 INT8 BIN EXPORT_IMPORT"
                                           : "FP32 INT8 BIN EXPORT_IMPORT";
  if (key == "RANGE_FOR_STREAMS") return fmt::format("1 {}", topology.cpus.size());
  if (key == "RANGE_FOR_ASYNC_INFER_REQUESTS") return "1 1 1";
  if (key == "OPTIMAL_NUMBER_OF_INFER_REQUESTS")
    return std::to_string(std::max<std::size_t>(1, s.placement.streams.size()));
  if (key == "NETWORK_NAME") return model->name;
  return yes_no(model->from_cache);  // LOADED_FROM_CACHE
}

}  // namespace

void refuse_key(std::string_view key) {
  const auto bare = bare_key(key);
  if (is_read_only(bare)) fail(ErrorCode::bad_option, "{} is read-only", key);
  fail(ErrorCode::bad_option, "option \"{}\" is not known{}", key, did_you_mean(bare, config_keys()));
}

Property property_of(const OptionRow& row, const Settings& s) {
  static const ProcessLifetime defaults([] { return Options(); });
  Property p;
  p.key = row.info.key;
  const auto asked = row.asked(s.options), usual = row.asked(*defaults);
  if (s.options.given.contains(row.info.setting) || asked != usual) p.asked = asked;
  if (row.used)
    std::tie(p.value, p.reason) = row.used(s);
  else
    p.value = row.asked(s.made_with);
  if (!row.used && p.value != asked) p.reason = kOfFile;
  return p;
}

std::vector<Property> list_properties(const Settings& settings, const Topology& topology,
                                      const ModelFacts* model) {
  std::vector<Property> out;
  for (const auto& row : option_rows()) out.push_back(property_of(row, settings));
  const auto add = [&](std::span<const std::string_view> keys) {
    for (const auto word : keys) {
      const std::string key(word);
      const auto why = key == "LOADED_FROM_CACHE" ? model->cache_reason : "";
      out.push_back({key, fact(key, settings, topology, model), "", why, true});
    }
  };
  add(kDevice);
  if (model != nullptr) add(kModel);
  return out;
}

const Property& find_property(const std::vector<Property>& properties, std::string_view key) {
  const auto bare = bare_key(key);
  for (const auto& p : properties)
    if (p.key == bare) return p;
  std::vector<std::string> keys;
  for (const auto& p : properties) keys.push_back(p.key);
  fail(ErrorCode::bad_option, "property \"{}\" is not known{}", key, did_you_mean(bare, keys));
}

std::vector<Property> properties(const Options& options) {
  return guarded("properties", [&] {
    const AtWork here;
    const auto topology = read_topology();
    const auto taken = ProcessorLocks::here().taken(topology.cpus.back().number + 1);
    return list_properties(settings_for(options, topology, taken, threads_of_own_arena()), topology);
  });
}

}  // namespace lamina
