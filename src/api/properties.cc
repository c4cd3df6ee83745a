#include "api/properties.h"

#include <algorithm>

#include "api/at_work.h"
#include "api/option_values.h"
#include "base/cpu.h"
#include "base/cpu_features.h"
#include "base/error.h"
#include "base/guard.h"
#include "base/immortal.h"
#include "base/nearest.h"
#include "base/parallel.h"

namespace lamina {
namespace {

/// Facts of the device, then those of a compiled model.
const std::vector<std::string> kDevice{"SUPPORTED_PROPERTIES",  "SUPPORTED_METRICS",
                                       "SUPPORTED_CONFIG_KEYS", "AVAILABLE_DEVICES",
                                       "FULL_DEVICE_NAME",      "DEVICE_ARCHITECTURE",
                                       "DEVICE_TYPE",           "OPTIMIZATION_CAPABILITIES",
                                       "RANGE_FOR_STREAMS",     "RANGE_FOR_ASYNC_INFER_REQUESTS"};
const std::vector<std::string> kModel{"OPTIMAL_NUMBER_OF_INFER_REQUESTS", "NETWORK_NAME", "EXECUTION_DEVICES",
                                      "LOADED_FROM_CACHE"};

bool is_read_only(std::string_view key) {
  return std::find(kDevice.begin(), kDevice.end(), key) != kDevice.end() ||
         std::find(kModel.begin(), kModel.end(), key) != kModel.end();
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
    auto keys = kDevice;
    if (model != nullptr) keys.insert(keys.end(), kModel.begin(), kModel.end());
    const auto settings = config_keys();
    if (key == "SUPPORTED_PROPERTIES") keys.insert(keys.end(), settings.begin(), settings.end());
    return words(keys);
  }
  if (key == "AVAILABLE_DEVICES" || key == "EXECUTION_DEVICES") return "CPU";
  if (key == "FULL_DEVICE_NAME") return processor_name();
  if (key == "DEVICE_ARCHITECTURE") return "intel64";
  if (key == "DEVICE_TYPE") return "INTEGRATED";
  if (key == "OPTIMIZATION_CAPABILITIES")
    return multiplies_bf16(read_machine()) ? "FP32 BF16 BIN EXPORT_IMPORT" : "FP32 BIN EXPORT_IMPORT";
  if (key == "RANGE_FOR_STREAMS") return fmt::format("1 {}", topology.cpus.size());
  if (key == "RANGE_FOR_ASYNC_INFER_REQUESTS") return "1 1 1";
  if (key == "OPTIMAL_NUMBER_OF_INFER_REQUESTS")
    return std::to_string(std::max<std::size_t>(1, s.placement.streams.size()));
  if (key == "NETWORK_NAME") return model->name;
  return yes_no(model->from_cache);  // LOADED_FROM_CACHE
}

Property property_of(const OptionRow& row, const Settings& s) {
  static const Lasting defaults([] { return Options(); });
  Property p;
  p.key = row.info.key;
  const auto asked = row.asked(s.options), usual = row.asked(*defaults);
  if (s.options.given.contains(row.setting) || asked != usual) p.asked = asked;
  if (row.used)
    std::tie(p.value, p.reason) = row.used(s);
  else
    p.value = row.asked(s.made_with);
  if (!row.used && p.value != asked) p.reason = kOfFile;
  return p;
}

/// This processor as options let it be used; reading it fixes nothing for the process.
Machine machine_for(const Options& o) {
  return limited(read_machine(), isa_named(o.max_isa).value_or(Isa::avx512));
}

/// What oneTBB gives an arena here may be less.
void obey_library(Placement& p, int asked) {
  const int most = allowed_threads(p.threads_each);
  if (most >= p.threads_each) return;
  const auto why = "this process limits oneTBB (tbb::global_control)";
  const int streams = std::max(1, static_cast<int>(p.streams.size()));
  p.threads_each = most;
  p.threads = most * streams;
  p.why.threads = why;
  const auto shorten = [most](StreamPlace& place) {
    place.cpus.resize(std::min(place.cpus.size(), static_cast<std::size_t>(most)));
  };
  shorten(p.callers);
  std::for_each(p.streams.begin(), p.streams.end(), shorten);
  if (asked <= p.threads) return;
  const std::string key = "CPU_THREADS_NUM: ";
  std::erase_if(p.warnings, [&](const std::string& said) { return said.starts_with(key); });
  p.warnings.push_back(fmt::format("{}{} threads, of {} wanted: {}", key, p.threads, asked, why));
}

void tell(const Settings& s, const Logger& log) {
  for (const auto& warning : s.placement.warnings) log.warning("{}", warning);
  for (const auto& row : option_rows()) {
    if (row.setting != row.info.key) continue;
    const auto p = property_of(row, s);
    const bool differs = !p.asked.empty() && p.value != p.asked && !p.reason.empty();
    const auto& said = s.placement.warnings;
    const bool warned = std::any_of(said.begin(), said.end(),
                                    [&](const std::string& w) { return w.starts_with(p.key + ": "); });
    if (differs && !warned) log.info("{}: {} instead of {}: {}", p.key, p.value, p.asked, p.reason);
  }
  if (asked_precision(s.options).second.empty() && s.precision != Precision::bf16 &&
      multiplies_bf16(this_machine()))
    log.info("this processor computes in bf16, faster and less exact, when asked to (ENFORCE_BF16)");
}

}  // namespace

void refuse_key(std::string_view key) {
  const auto bare = bare_key(key);
  if (is_read_only(bare)) fail(ErrorCode::bad_option, "{} is read-only", key);
  fail(ErrorCode::bad_option, "option \"{}\" is not known{}", key, did_you_mean(bare, config_keys()));
}

/// Emulated bf16 would be slower than f32.
void decide_precision(Settings& s, const Machine& machine) {
  const auto [asked, key] = asked_precision(s.options);
  const auto verdict = asked == Precision::f16    ? Verdict::no("f16 is computed in f32")
                       : asked == Precision::bf16 ? multiplies_bf16(machine)
                                                  : Verdict::yes();
  s.precision = verdict ? asked : Precision::f32;
  s.precision_reason = verdict.reason();
  if (verdict && !key.empty() && key != "INFERENCE_PRECISION_HINT")
    s.precision_reason = fmt::format("{} decides", key);
}

std::vector<std::string> precision_sentences(const Settings& s) {
  std::vector<std::string> out;
  const auto asked = asked_precision(s.options).first;
  if (s.precision == Precision::bf16)
    out.emplace_back("bf16 for convolutions, matrix products and what lies between them");
  else if (asked == Precision::bf16)
    out.push_back(fmt::format("f32 in place of bf16: {}", s.precision_reason));
  if (asked == Precision::f32)
    out.emplace_back("f32 was asked for: floating-point values are f32 and quantise steps literal anyway");
  return out;
}

Settings settings_for(const Options& options, const Topology& topology, const std::set<int>& taken,
                      int arena) {
  check_options(options);
  Settings s{.options = options, .placement = place_streams(topology, options, arena, {}, taken)};
  decide_precision(s, machine_for(options));
  return s;
}

int threads_to_compile(const Options& options) {
  return settings_for(options, read_topology(), {}, threads_of_own_arena()).placement.threads;
}

void settle(Settled& to, const InferenceTime& time, const Logger& log) {
  auto& s = to.settings;
  const auto& options = s.options;
  check_options(options);
  const auto topology = read_topology();
  const int arena = threads_of_own_arena();
  // Another process may bind itself between the look and the taking.
  for (int tries = 0; tries < 3; ++tries) {
    const auto taken = ProcessorLocks::here().taken(topology.cpus.back().number + 1);
    s.placement = place_streams(topology, options, arena, time, taken);
    if (s.placement.binding != Binding::processors) break;
    std::vector<int> cpus;
    for (const auto& place : s.placement.streams)
      cpus.insert(cpus.end(), place.cpus.begin(), place.cpus.end());
    to.held = HeldProcessors(std::move(cpus));
    if (to.held.alone() || options.binding) break;
    to.held = HeldProcessors();
  }
  obey_library(s.placement, options.threads);
  tell(s, log);
}

std::vector<Property> list_properties(const Settings& settings, const Topology& topology,
                                      const ModelFacts* model) {
  std::vector<Property> out;
  for (const auto& row : option_rows()) out.push_back(property_of(row, settings));
  const auto add = [&](const std::vector<std::string>& keys) {
    for (const auto& key : keys) {
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
