/// The rows of the table of options.
#include <limits>

#include "api/limit_rows.h"
#include "api/option_values.h"
#include "api/options_table.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/no_destructor.h"
#include "base/parallel.h"
#include "base/words.h"

namespace lamina {
namespace {

constexpr const char* kDeviation = "documented default YES; bf16 changes results: ask for it";
constexpr int kMostRequests = 1024, kMostPlans = 1000, kMostCache = 1048576;

using Used = std::function<std::pair<std::string, std::string>(const Settings&)>;

/// A row that sets a field by one of some words. `T`: the field's type, E or optional<E>.
template <class E, class T>
OptionRow words_row(std::string key, std::string values, std::string help, T Options::*field,
                    std::string name, Words<E> words, Used used = {}) {
  const auto given = [field](const Options& o) -> std::optional<E> { return o.*field; };
  OptionRow row{.info = {std::move(key), std::move(values), std::move(help)}};
  row.set = [field, words](Options& o, std::string_view v) {
    const auto value = of_word(words, v);
    if (value) o.*field = *value;
    return value.has_value();
  };
  row.asked = [given, words](const Options& o) {
    const auto value = given(o);
    return value ? word_of(words, *value) : std::string();
  };
  row.used = std::move(used);
  row.wrong = [given, name = std::move(name), words](const Options& o) -> std::string {
    const auto value = given(o);
    if (!value || !word_of(words, *value).empty()) return "";
    return fmt::format("{} {}", name, static_cast<int>(*value));
  };
  return row;
}

template <class T>
OptionRow number_row(std::string key, std::string help, T Options::*field, std::string name, std::int64_t low,
                     std::int64_t high) {
  OptionRow row{.info = {std::move(key), fmt::format("{} to {}", low, high), std::move(help)}};
  row.set = [=](Options& o, std::string_view v) {
    const auto n = whole(v, low, high);
    if (n) o.*field = static_cast<T>(*n);
    return n.has_value();
  };
  row.asked = [=](const Options& o) { return std::to_string(o.*field); };
  row.wrong = [=](const Options& o) -> std::string {
    if (std::cmp_greater_equal(o.*field, low) && std::cmp_less_equal(o.*field, high)) return "";
    return fmt::format("{} {}", name, o.*field);
  };
  return row;
}

OptionRow truth_row(std::string key, std::string help, bool Options::*field, std::string name) {
  return words_row(std::move(key), "YES, NO", std::move(help), field, std::move(name), kTruth);
}

OptionRow list_row(std::string key, std::string values, std::string help,
                   std::vector<std::string> Options::*field) {
  OptionRow row{.info = {std::move(key), std::move(values), std::move(help)}};
  row.set = [=](Options& o, std::string_view v) {
    o.*field = names_of(v);
    return true;
  };
  row.asked = [=](const Options& o) { return fmt::format("{}", fmt::join(o.*field, ",")); };
  row.words = false;
  return row;
}

OptionRow threads_row(std::string key) {
  auto row = number_row(std::move(key),
                        "number of threads of all streams together; 0: as many as the machine allows",
                        &Options::threads, "threads", 0, kMostThreads);
  row.info.values += ", AUTO";
  row.set = [number = row.set](Options& o, std::string_view v) { return number(o, v == "AUTO" ? "0" : v); };
  row.used = [](const Settings& s) -> std::pair<std::string, std::string> {
    return {std::to_string(s.placement.threads), s.placement.why.threads};
  };
  row.info.setting = "CPU_THREADS_NUM";
  return row;
}

bool set_streams(Options& o, std::string_view v) {
  if (const auto n = whole(v, 0, Streams::kMost))
    o.streams = static_cast<int>(*n);
  else if (v == "NUMA")
    o.streams = Streams::numa();
  else if (v == "AUTO")
    o.streams = Streams::automatic();
  else
    return false;
  return true;
}

std::string asked_streams(const Options& o) {
  if (!o.streams) return "";
  if (o.streams->kind() == Streams::Kind::number) return std::to_string(o.streams->number());
  return *o.streams == Streams::numa() ? "NUMA" : "AUTO";
}

OptionRow streams_row(std::string key) {
  OptionRow row{.info = {std::move(key), fmt::format("0 to {}, NUMA, AUTO", Streams::kMost),
                         "number of streams, that is, of requests that run at the same time; AUTO: the "
                         "smallest that improves throughput; 0: the callers' threads do the work"}};
  row.set = set_streams;
  row.asked = asked_streams;
  row.used = [](const Settings& s) -> std::pair<std::string, std::string> {
    return {std::to_string(s.placement.streams.size()), s.placement.why.streams};
  };
  row.wrong = [](const Options& o) -> std::string {
    const int n = o.streams ? o.streams->number() : 0;
    return n < 0 || n > Streams::kMost ? fmt::format("streams {}", n) : "";
  };
  row.info.setting = "CPU_THROUGHPUT_STREAMS";
  return row;
}

OptionRow binding_row(std::string key, std::string values, std::string help, Words<Binding> words) {
  auto row = words_row(std::move(key), std::move(values), std::move(help), &Options::binding, "binding",
                       words, [words](const Settings& s) -> std::pair<std::string, std::string> {
                         return {word_of(words, s.placement.binding), s.placement.why.binding};
                       });
  row.info.setting = "CPU_BIND_THREAD";
  return row;
}

void add_documented(std::vector<OptionRow>& t) {
  t.push_back(truth_row("EXCLUSIVE_ASYNC_REQUESTS",
                        "started requests of all such models of the process run one after another",
                        &Options::exclusive, "exclusive"));
  t.push_back(truth_row("PERF_COUNT", "times every layer", &Options::profile, "profile"));
  t.push_back(threads_row("CPU_THREADS_NUM"));
  t.push_back(threads_row("INFERENCE_NUM_THREADS"));
  t.push_back(binding_row("CPU_BIND_THREAD", "YES, NUMA, NO",
                          "binds each of lamina's threads to a processor, to those of a node, or not at all",
                          kBindings));
  t.push_back(binding_row("AFFINITY", "CORE, NUMA, NONE, HYBRID_AWARE",
                          "the same as CPU_BIND_THREAD: CORE and HYBRID_AWARE mean YES, NONE means NO",
                          kAffinities));
  t.push_back(binding_row("ENABLE_CPU_PINNING", "YES, NO", "the same as CPU_BIND_THREAD", kPinning));
  t.push_back(streams_row("CPU_THROUGHPUT_STREAMS"));
  t.push_back(streams_row("NUM_STREAMS"));
}

void add_precision(std::vector<OptionRow>& t) {
  t.push_back(words_row(
      "ENFORCE_BF16", "YES, NO", "bf16 where the processor has it", &Options::enforce_bf16, "enforce_bf16",
      kTruth, [](const Settings& s) -> std::pair<std::string, std::string> {
        const bool on = s.precision == Precision::bf16;
        const auto key = asked_precision(s.options).second;
        if (s.options.enforce_bf16 == on) return {yes_no(on), ""};
        if (key.empty() && !on) return {yes_no(on), kDeviation};
        return {yes_no(on), s.precision_reason.empty() ? fmt::format("{} decides", key) : s.precision_reason};
      }));
  t.push_back(words_row("INFERENCE_PRECISION_HINT", "model (dynamic, undefined), f32, bf16, f16",
                        "precision of computing", &Options::precision, "precision", kPrecisions,
                        [](const Settings& s) -> std::pair<std::string, std::string> {
                          return {word_of(kPrecisions, s.precision), s.precision_reason};
                        }));
  t.push_back(words_row("EXECUTION_MODE_HINT", "PERFORMANCE, ACCURACY, NONE",
                        "PERFORMANCE: bf16 where the processor has it; ACCURACY: the model's precision",
                        &Options::execution_mode, "execution_mode", kModes));
}

void add_hints(std::vector<OptionRow>& t) {
  t.push_back(words_row("PERFORMANCE_HINT", "LATENCY, THROUGHPUT, CUMULATIVE_THROUGHPUT, NONE",
                        "streams when no number is given: LATENCY one per node, THROUGHPUT as AUTO, NONE one",
                        &Options::hint, "hint", kHints));
  t.push_back(number_row("PERFORMANCE_HINT_NUM_REQUESTS",
                         "streams that AUTO and THROUGHPUT make, at most; 0: any", &Options::hint_requests,
                         "hint_requests", 0, kMostRequests));
  t.push_back(words_row("ENABLE_HYPER_THREADING", "YES, NO, AUTO", "all threads of a core, or one",
                        &Options::hyper_threading, "hyper_threading", kHyperThreading,
                        [](const Settings& s) -> std::pair<std::string, std::string> {
                          return {yes_no(s.placement.hyper_threading), s.placement.why.hyper_threading};
                        }));
  t.push_back(words_row("SCHEDULING_CORE_TYPE", "ANY_CORE, PCORE_ONLY, ECORE_ONLY",
                        "uses only performance or only efficient cores, where the machine has such",
                        &Options::cores, "cores", kCores,
                        [](const Settings& s) -> std::pair<std::string, std::string> {
                          return {word_of(kCores, s.placement.cores), s.placement.why.cores};
                        }));
}

bool set_force(Options& o, std::string_view v) {
  auto overrides = names_of(v);
  for (const auto& forced : overrides)
    if (const auto at = forced.rfind('='); at == 0 || at >= forced.size() - 1) return false;
  if (overrides.empty()) return false;
  o.force = std::move(overrides);
  return true;
}

bool set_max_isa(Options& o, std::string_view v) {
  for (const auto& word : isa_limits())
    if (v == upper_case(word)) {
      o.max_isa = word;
      return true;
    }
  return false;
}

bool set_cache_dir(Options& o, std::string_view v) {
  o.cache_dir = v;
  return v.find('\0') == std::string_view::npos;
}

void add_own(std::vector<OptionRow>& t) {
  t.push_back(list_row("DISABLE", "RULE[,RULE], all", "optimisations to leave out", &Options::disable));
  t.push_back(list_row("EXEMPT", "NAME_OR_REGEX[,...]",
                       "nodes that no optimisation touches (RE2's syntax, for the whole name)",
                       &Options::exempt));
  t.push_back(list_row("FORCE", "NODE=LABEL[,OPERATOR=LABEL,...]",
                       "kernels to use, whatever the estimates say", &Options::force));
  t.back().set = set_force;
  t.push_back({.info = {"MAX_ISA", fmt::format("{}", fmt::join(isa_limits(), ", ")),
                        "highest instruction set, for the whole process"},
               .set = set_max_isa,
               .asked = [](const Options& o) { return o.max_isa; }});
  t.push_back(number_row("STOP_AFTER", "stop after that many rewrites of the graph", &Options::stop_after,
                         "stop_after", -1, std::numeric_limits<long>::max()));
  t.back().info.values = "-1 or more";
  t.back().wrong = {};  // any negative number: never
  t.push_back(number_row("CACHED_PLANS", "plans kept in memory, one per combination of shapes",
                         &Options::cached_plans, "cached_plans", 1, kMostPlans));
  t.push_back({.info = {"CACHE_DIR", "a folder, or nothing", "folder in which compiled models are kept"},
               .set = set_cache_dir,
               .asked = [](const Options& o) { return o.cache_dir; },
               .words = false});
  t.push_back(words_row("CACHE_MODE", "OPTIMIZE_SPEED, OPTIMIZE_SIZE", "with packed weights, or without",
                        &Options::cache_mode, "cache_mode", kCacheModes));
  t.push_back(number_row("CACHE_SIZE", "MiB that CACHE_DIR may take", &Options::cache_size, "cache_size", 1,
                         kMostCache));
  t.push_back(truth_row("KEEP_WEIGHTS", "keeps the original weights beside the packed ones",
                        &Options::keep_weights, "keep_weights"));
}

}  // namespace

const std::vector<OptionRow>& option_rows() {
  static const ProcessLifetime table([] {
    std::vector<OptionRow> t;
    add_documented(t);
    add_precision(t);
    add_hints(t);
    add_own(t);
    add_limits(t);
    for (auto& row : t)
      if (row.info.setting.empty()) row.info.setting = row.info.key;
    return t;
  });
  return *table;
}

}  // namespace lamina
