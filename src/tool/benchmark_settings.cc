/// The settings of `lamina benchmark`: a file of them, lamina's own options, and what one says of another.
#include <algorithm>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/option_words.h"
#include "base/words.h"
#include "tool/benchmark.h"
#include "tool/device_config.h"

namespace lamina::tool {

std::string BenchmarkCommand::typed(const std::string& own, const std::string& app_name) const {
  for (const auto& text : written)
    if (text.starts_with(own + " ")) {
      const auto word = text.substr(own.size() + 1);
      return word.substr(0, word.find('='));
    }
  return app ? app_name : own;
}

namespace {

/// What lamina's own options say of settings, as --set would.
std::vector<std::string> fields_as_pairs(const Common& c, const Given& given) {
  const std::vector<std::tuple<const char*, const char*, std::string>> all{
      {"--threads", "CPU_THREADS_NUM", std::to_string(c.threads)},
      {"--precision", "INFERENCE_PRECISION_HINT", c.precision == "int8" ? "model" : c.precision},
      {"--max-isa", "MAX_ISA", c.max_isa},
      {"--disable", "DISABLE", fmt::format("{}", fmt::join(c.disable, ","))},
      {"--exempt", "EXEMPT", fmt::format("{}", fmt::join(c.exempt, ","))},
      {"--force", "FORCE", fmt::format("{}", fmt::join(c.force, ","))}};
  std::vector<std::string> out;
  for (const auto& [option, key, value] : all)
    if (given(option)) out.push_back(fmt::format("{}={}", key, value));
  return out;
}

/// Settings that the command line decides, though by another key.
std::set<std::string> decided(const BenchmarkCommand& o, const Given& given) {
  std::set<std::string> out;
  const std::vector<std::string> precision{"INFERENCE_PRECISION_HINT", "ENFORCE_BF16", "EXECUTION_MODE_HINT"};
  const auto set = o.common.options().given;
  if (given("--precision") ||
      std::any_of(precision.begin(), precision.end(), [&](const auto& key) { return set.contains(key); }))
    out.insert(precision.begin(), precision.end());
  if (o.requests > 0) out.insert("PERFORMANCE_HINT_NUM_REQUESTS");
  return out;
}

std::string setting_of(std::string_view key) {
  const auto bare = bare_key(key);
  for (auto& option : option_list())
    if (option.key == bare) return std::move(option.setting);
  return std::string(bare);
}

/// What --load-config says goes before all else: the command line wins.
void take_config(BenchmarkCommand& o, const Given& given, const Steps& steps) {
  if (o.load_config.empty()) return;
  std::vector<std::string> others, pairs;
  const auto idle = decided(o, given);
  for (const auto& [key, value] : read_device_config(o.load_config, others))
    if (!idle.contains(setting_of(key))) pairs.push_back(key + "=" + value);
  for (const auto& device : others)
    steps.warn(fmt::format("{}: \"{}\" is not the CPU: its settings have no effect",
                           o.typed("--load-config", "-load_config"), device));
  for (const auto& pair : fields_as_pairs(o.common, given)) pairs.push_back(pair);
  o.common.set.insert(o.common.set.begin(), pairs.begin(), pairs.end());
}

PerformanceHint hint_of(const std::string& word) {
  if (word == "latency") return PerformanceHint::latency;
  if (word == "throughput" || word == "tput") return PerformanceHint::throughput;
  if (word == "cumulative_throughput" || word == "ctput") return PerformanceHint::cumulative_throughput;
  return PerformanceHint::none;
}

/// benchmark_app's defaults, and what depends on each other.
void complete(BenchmarkCommand& o, const Options& options, const Steps& steps) {
  constexpr double kAppSeconds = 60;
  if (o.app && !o.timed && !o.counted) o.timed = true, o.seconds = kAppSeconds;
  if (!o.app && !o.timed && !o.counted) o.timed = true;
  if (o.app && o.api.empty()) o.api = o.hint == "latency" ? "sync" : "async";
  if (o.app && o.hint.empty() && !options.given.contains("PERFORMANCE_HINT")) {
    o.hint = o.api == "sync" ? "latency" : "throughput";
    steps.warn(
        fmt::format("Performance hint was not explicitly specified in command line. Device(CPU) performance "
                    "hint will be set to {}.",
                    o.api == "sync" ? "LATENCY" : "THROUGHPUT"));
  }
  if (o.api == "sync" && o.requests > 1) {
    steps.warn(fmt::format("{} {}: {} sync runs one request at a time, 1 is used",
                           o.typed("--requests", "-nireq"), o.requests, o.typed("--api", "-api")));
    o.requests = 1;
  }
  const bool reports = o.wants_reports();
  const auto without = fmt::format("has no effect without {} or {}", o.typed("--report-type", "-report_type"),
                                   o.typed("--pcsort", "-pcsort"));
  if (o.json_stats && !reports)
    steps.warn(fmt::format("{} {}", o.typed("--json-stats", "-json_stats"), without));
  if (o.report_folder != "." && !reports)
    steps.warn(fmt::format("{} {}", o.typed("--report-folder", "-report_folder"), without));
  if (o.top > 0 && o.app) steps.warn("--top has no effect with -m: -pcsort sorts");
  o.pc = o.pc || (o.top > 0 && !o.app);
}

/// What the command line says of streams, as options say it.
Options with_streams(const BenchmarkCommand& o, Options options) {
  if (!o.hint.empty()) {
    options.hint = hint_of(o.hint);
    options.given.insert("PERFORMANCE_HINT");  // NONE, too, is asked for
  }
  if (!o.streams.empty()) try {
      options.set("CPU_THROUGHPUT_STREAMS", o.streams);
    } catch (const Error&) {
      throw UsageError(
          fmt::format("--streams {}: wanted a number from 0 to {}, AUTO or NUMA", o.streams, Streams::kMost));
    }
  if (o.requests > 0 && options.hint_requests == 0)
    options.hint_requests = static_cast<std::size_t>(o.requests);
  return options;
}

}  // namespace

Options settings_of(BenchmarkCommand& o, const Given& given, const Steps& steps) {
  take_config(o, given, steps);
  auto options = o.common.options();
  complete(o, options, steps);
  return with_streams(o, std::move(options));
}

}  // namespace lamina::tool
