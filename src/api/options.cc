/// The table of options, shared by the API and the tool.
#include <algorithm>
#include <limits>

#include "api/options_table.h"
#include "base/error.h"
#include "base/guard.h"
#include "base/nearest.h"
#include "base/numbers.h"
#include "base/text.h"
#include "base/words.h"

namespace lamina {
namespace {

constexpr int kMostThreads = 1024, kMostRequests = 1024, kMostPlans = 1000, kMostCache = 1048576;

std::vector<std::string> list(std::string_view text) {
  std::vector<std::string> out;
  for (const auto word : pieces_of(text))
    if (!word.empty()) out.emplace_back(word);
  return out;
}

/// Digits only.
std::optional<std::int64_t> whole(std::string_view text, std::int64_t low, std::int64_t high) {
  const bool negative = low < 0 && text.starts_with('-');
  const auto digits = text.substr(negative ? 1 : 0);
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos) return {};
  const auto v = parse_integer<std::int64_t>(text);
  return v && *v >= low && *v <= high ? v : std::nullopt;
}

std::string yes_no(bool on) { return on ? "YES" : "NO"; }

std::optional<bool> truth(std::string_view text) {
  for (const auto word : {"YES", "TRUE", "ON", "1"})
    if (text == word) return true;
  for (const auto word : {"NO", "FALSE", "OFF", "0"})
    if (text == word) return false;
  return {};
}

/// Words for the values of an enumeration, the first of a value being the one that is read back.
template <class E>
using Words = std::vector<std::pair<std::string_view, E>>;

template <class E>
std::optional<E> of_word(const Words<E>& words, std::string_view text) {
  for (const auto& [word, value] : words)
    if (text == word) return value;
  return {};
}
template <class E>
std::string word_of(const Words<E>& words, E value) {
  for (const auto& [word, of] : words)
    if (value == of) return std::string(word);
  return "";
}

const Words<Binding> kBindings{
    {"YES", Binding::processors},  {"NUMA", Binding::numa_nodes}, {"NO", Binding::none},
    {"TRUE", Binding::processors}, {"ON", Binding::processors},   {"1", Binding::processors},
    {"FALSE", Binding::none},      {"OFF", Binding::none},        {"0", Binding::none}};
const Words<Binding> kAffinities{{"CORE", Binding::processors},
                                 {"NUMA", Binding::numa_nodes},
                                 {"NONE", Binding::none},
                                 {"HYBRID_AWARE", Binding::processors}};
const Words<Precision> kPrecisions{{"model", Precision::model},     {"f32", Precision::f32},
                                   {"bf16", Precision::bf16},       {"f16", Precision::f16},
                                   {"MODEL", Precision::model},     {"DYNAMIC", Precision::model},
                                   {"UNDEFINED", Precision::model}, {"F32", Precision::f32},
                                   {"BF16", Precision::bf16},       {"F16", Precision::f16}};
const Words<ExecutionMode> kModes{{"NONE", ExecutionMode::none},
                                  {"PERFORMANCE", ExecutionMode::performance},
                                  {"ACCURACY", ExecutionMode::accuracy}};
const Words<PerformanceHint> kHints{{"NONE", PerformanceHint::none},
                                    {"LATENCY", PerformanceHint::latency},
                                    {"THROUGHPUT", PerformanceHint::throughput},
                                    {"CUMULATIVE_THROUGHPUT", PerformanceHint::cumulative_throughput}};
const Words<HyperThreading> kHyperThreading{
    {"AUTO", HyperThreading::automatic}, {"YES", HyperThreading::on},  {"NO", HyperThreading::off},
    {"TRUE", HyperThreading::on},        {"ON", HyperThreading::on},   {"1", HyperThreading::on},
    {"FALSE", HyperThreading::off},      {"OFF", HyperThreading::off}, {"0", HyperThreading::off}};
const Words<CoreType> kCores{
    {"ANY_CORE", CoreType::any}, {"PCORE_ONLY", CoreType::performance}, {"ECORE_ONLY", CoreType::efficient}};

const Words<CacheMode> kCacheModes{{"OPTIMIZE_SPEED", CacheMode::speed}, {"OPTIMIZE_SIZE", CacheMode::size}};

using Used = std::function<std::pair<std::string, std::string>(const Settings&)>;

/// A row that sets a field by one of some words. `T`: the field's type, E or optional<E>.
template <class E, class T>
OptionRow words_row(std::string key, std::string values, std::string help, T Options::*field,
                    const Words<E>& words, Used used = {}) {
  return {{std::move(key), std::move(values), std::move(help)},
          [field, &words](Options& o, std::string_view v) {
            const auto value = of_word(words, v);
            if (value) o.*field = *value;
            return value.has_value();
          },
          [field, &words](const Options& o) -> std::string {
            if constexpr (std::is_same_v<T, std::optional<E>>)
              return o.*field ? word_of(words, *(o.*field)) : "";
            else
              return word_of(words, o.*field);
          },
          std::move(used)};
}

template <class T>
OptionRow number_row(std::string key, std::string help, T Options::*field, std::int64_t low,
                     std::int64_t high, std::string values = {}) {
  if (values.empty()) values = fmt::format("{} to {}", low, high);
  return {{std::move(key), std::move(values), std::move(help)},
          [=](Options& o, std::string_view v) {
            const auto n = whole(v, low, high);
            if (n) o.*field = static_cast<T>(*n);
            return n.has_value();
          },
          [=](const Options& o) { return std::to_string(o.*field); }};
}

OptionRow truth_row(std::string key, std::string help, bool Options::*field) {
  return {{std::move(key), "YES, NO", std::move(help)},
          [=](Options& o, std::string_view v) {
            const auto on = truth(v);
            if (on) o.*field = *on;
            return on.has_value();
          },
          [=](const Options& o) { return yes_no(o.*field); }};
}

OptionRow list_row(std::string key, std::string values, std::string help,
                   std::vector<std::string> Options::*field) {
  OptionRow row{{std::move(key), std::move(values), std::move(help)},
                [=](Options& o, std::string_view v) {
                  o.*field = list(v);
                  return true;
                },
                [=](const Options& o) { return fmt::format("{}", fmt::join(o.*field, ",")); }};
  row.words = false;
  return row;
}

OptionRow threads_row(std::string key) {
  OptionRow row{
      {std::move(key), "0 to 1024, AUTO", "threads of all streams together; 0: what the machine allows"},
      [](Options& o, std::string_view v) {
        const auto n = v == "AUTO" ? std::optional<std::int64_t>(0) : whole(v, 0, kMostThreads);
        if (n) o.threads = static_cast<int>(*n);
        return n.has_value();
      },
      [](const Options& o) { return std::to_string(o.threads); },
      [](const Settings& s) -> std::pair<std::string, std::string> {
        return {std::to_string(s.placement.threads), s.placement.why.threads};
      },
      "CPU_THREADS_NUM"};
  return row;
}

OptionRow streams_row(std::string key) {
  return {
      {std::move(key), "0 to 1024, NUMA, AUTO",
       "most requests that run at once; AUTO: the fewest that improve throughput; 0: the callers' threads do "
       "the work"},
      [](Options& o, std::string_view v) {
        const auto n = whole(v, 0, Streams::kMost);
        if (n)
          o.streams = static_cast<int>(*n);
        else if (v == "NUMA")
          o.streams = Streams::numa();
        else if (v == "AUTO")
          o.streams = Streams::automatic();
        else
          return false;
        return true;
      },
      [](const Options& o) -> std::string {
        if (!o.streams) return "";
        if (o.streams->kind() == Streams::Kind::number) return std::to_string(o.streams->number());
        return *o.streams == Streams::numa() ? "NUMA" : "AUTO";
      },
      [](const Settings& s) -> std::pair<std::string, std::string> {
        return {std::to_string(s.placement.streams.size()), s.placement.why.streams};
      },
      "CPU_THROUGHPUT_STREAMS"};
}

Used binding_in(const Words<Binding>& words) {
  return [&words](const Settings& s) -> std::pair<std::string, std::string> {
    return {word_of(words, s.placement.binding), s.placement.why.binding};
  };
}

const std::string kDeviation = "documented default YES; bf16 changes results: ask for it";

void add_documented(std::vector<OptionRow>& t) {
  t.push_back(truth_row("EXCLUSIVE_ASYNC_REQUESTS",
                        "started requests of all such models of the process run one after another",
                        &Options::exclusive));
  t.push_back(truth_row("PERF_COUNT", "times every layer", &Options::profile));
  t.push_back(threads_row("CPU_THREADS_NUM"));
  t.push_back(threads_row("INFERENCE_NUM_THREADS"));
  t.push_back(words_row("CPU_BIND_THREAD", "YES, NUMA, NO",
                        "what lamina's threads are bound to: a processor each, those of a node, nothing",
                        &Options::binding, kBindings, binding_in(kBindings)));
  t.push_back(words_row("AFFINITY", "CORE, NUMA, NONE, HYBRID_AWARE",
                        "the same as CPU_BIND_THREAD: CORE and HYBRID_AWARE mean YES, NONE means NO",
                        &Options::binding, kAffinities, binding_in(kAffinities)));
  t.back().setting = "CPU_BIND_THREAD";
  OptionRow pinning = words_row("ENABLE_CPU_PINNING", "YES, NO", "the same as CPU_BIND_THREAD",
                                &Options::binding, kBindings, binding_in(kBindings));
  pinning.set = [](Options& o, std::string_view v) {
    const auto on = truth(v);
    if (on) o.binding = *on ? Binding::processors : Binding::none;
    return on.has_value();
  };
  pinning.asked = [](const Options& o) { return o.binding ? yes_no(*o.binding != Binding::none) : ""; };
  pinning.used = [](const Settings& s) -> std::pair<std::string, std::string> {
    return {yes_no(s.placement.binding != Binding::none), s.placement.why.binding};
  };
  pinning.setting = "CPU_BIND_THREAD";
  t.push_back(std::move(pinning));
  t.push_back(streams_row("CPU_THROUGHPUT_STREAMS"));
  t.push_back(streams_row("NUM_STREAMS"));
}

void add_precision(std::vector<OptionRow>& t) {
  t.push_back({{"ENFORCE_BF16", "YES, NO", "bf16 where the processor has it"},
               [](Options& o, std::string_view v) {
                 const auto on = truth(v);
                 if (on) o.enforce_bf16 = on;
                 return on.has_value();
               },
               [](const Options& o) { return o.enforce_bf16 ? yes_no(*o.enforce_bf16) : ""; },
               [](const Settings& s) -> std::pair<std::string, std::string> {
                 const bool on = s.precision == Precision::bf16;
                 return {yes_no(on), s.options.enforce_bf16 ? s.precision_reason : kDeviation};
               }});
  t.push_back(words_row("INFERENCE_PRECISION_HINT", "model (dynamic, undefined), f32, bf16, f16",
                        "precision of computing", &Options::precision, kPrecisions,
                        [](const Settings& s) -> std::pair<std::string, std::string> {
                          return {word_of(kPrecisions, s.precision), s.precision_reason};
                        }));
  t.push_back(words_row("EXECUTION_MODE_HINT", "PERFORMANCE, ACCURACY, NONE",
                        "PERFORMANCE: bf16 where the processor has it; ACCURACY: the model's precision",
                        &Options::execution_mode, kModes));
}

void add_hints(std::vector<OptionRow>& t) {
  t.push_back(words_row("PERFORMANCE_HINT", "LATENCY, THROUGHPUT, CUMULATIVE_THROUGHPUT, NONE",
                        "streams when no number is given: LATENCY one per node, THROUGHPUT as AUTO, NONE one",
                        &Options::hint, kHints));
  t.push_back(number_row("PERFORMANCE_HINT_NUM_REQUESTS",
                         "streams that AUTO and THROUGHPUT make, at most; 0: any", &Options::hint_requests, 0,
                         kMostRequests));
  t.push_back(words_row("ENABLE_HYPER_THREADING", "YES, NO, AUTO", "all threads of a core, or one",
                        &Options::hyper_threading, kHyperThreading,
                        [](const Settings& s) -> std::pair<std::string, std::string> {
                          return {yes_no(s.placement.hyper_threading), s.placement.why.hyper_threading};
                        }));
  t.push_back(words_row("SCHEDULING_CORE_TYPE", "ANY_CORE, PCORE_ONLY, ECORE_ONLY",
                        "only such cores, where there are any", &Options::cores, kCores,
                        [](const Settings& s) -> std::pair<std::string, std::string> {
                          return {word_of(kCores, s.placement.cores), s.placement.why.cores};
                        }));
}

void add_own(std::vector<OptionRow>& t) {
  t.push_back(list_row("DISABLE", "RULE[,RULE], all", "optimisations to leave out", &Options::disable));
  t.push_back(list_row("EXEMPT", "NAME_OR_REGEX[,...]",
                       "nodes that no optimisation touches (RE2's syntax, for the whole name)",
                       &Options::exempt));
  t.push_back(list_row("FORCE", "NODE=LABEL[,OPERATOR=LABEL,...]",
                       "kernels that are wanted, whatever is estimated", &Options::force));
  t.back().set = [](Options& o, std::string_view v) {
    auto wishes = list(v);
    for (const auto& wish : wishes)
      if (const auto at = wish.rfind('='); at == 0 || at >= wish.size() - 1) return false;
    if (wishes.empty()) return false;
    o.force = std::move(wishes);
    return true;
  };
  t.push_back({{"MAX_ISA", "sse41, avx2, avx512, native", "highest instruction set, for the whole process"},
               [](Options& o, std::string_view v) {
                 for (const std::string word : {"sse41", "avx2", "avx512", "native"})
                   if (v == upper_case(word)) {
                     o.max_isa = word;
                     return true;
                   }
                 return false;
               },
               [](const Options& o) { return o.max_isa; }});
  t.push_back(number_row("STOP_AFTER", "stop after that many rewrites of the graph", &Options::stop_after, -1,
                         std::numeric_limits<long>::max(), "-1 or more"));
  t.push_back(number_row("CACHED_PLANS", "plans kept in memory, one per combination of shapes",
                         &Options::cached_plans, 1, kMostPlans));
  t.push_back({{"CACHE_DIR", "a folder, or nothing", "keeps compiled models there, for the next time"},
               [](Options& o, std::string_view v) {
                 o.cache_dir = v;
                 return v.find('\0') == std::string_view::npos;
               },
               [](const Options& o) { return o.cache_dir; }});
  t.back().words = false;
  t.push_back(words_row("CACHE_MODE", "OPTIMIZE_SPEED, OPTIMIZE_SIZE", "with packed weights, or without",
                        &Options::cache_mode, kCacheModes));
  t.push_back(number_row("CACHE_SIZE", "MiB that CACHE_DIR may take", &Options::cache_size, 1, kMostCache));
  t.push_back(truth_row("KEEP_WEIGHTS", "keeps the weights as they were read beside the packed ones",
                        &Options::keep_weights));
}

}  // namespace

const std::vector<OptionRow>& option_rows() {
  static const auto* const table = [] {
    auto* const t = new std::vector<OptionRow>;
    add_documented(*t);
    add_precision(*t);
    add_hints(*t);
    add_own(*t);
    return t;
  }();
  return *table;
}

const OptionRow* find_option(std::string_view key) {
  if (key.starts_with("KEY_")) key.remove_prefix(4);
  for (const auto& row : option_rows())
    if (row.info.key == key) return &row;
  return nullptr;
}

std::pair<Precision, std::string_view> asked_precision(const Options& o) {
  if (o.precision) return {*o.precision, "INFERENCE_PRECISION_HINT"};
  if (o.enforce_bf16) return {*o.enforce_bf16 ? Precision::bf16 : Precision::model, "ENFORCE_BF16"};
  if (o.execution_mode != ExecutionMode::none)
    return {o.execution_mode == ExecutionMode::performance ? Precision::bf16 : Precision::model,
            "EXECUTION_MODE_HINT"};
  return {Precision::model, ""};
}

void check_options(const Options& o) {
  const auto in = [](std::string_view name, auto value, std::int64_t low, std::int64_t high) {
    if (static_cast<std::int64_t>(value) < low || static_cast<std::int64_t>(value) > high)
      fail(ErrorCode::bad_option, "{} {}: wanted {} to {}", name, static_cast<std::int64_t>(value), low,
           high);
  };
  in("threads", o.threads, 0, kMostThreads);
  if (o.streams) in("streams", o.streams->number(), 0, Streams::kMost);
  in("hint_requests", std::min<std::size_t>(o.hint_requests, 1 << 30), 0, kMostRequests);
  in("cached_plans", std::min<std::size_t>(o.cached_plans, 1 << 30), 1, kMostPlans);
  in("cache_size", std::min<std::size_t>(o.cache_size, 1 << 30), 1, kMostCache);
  const auto known = [](std::string_view name, const std::string& word, auto value, std::string_view wanted) {
    if (word.empty()) fail(ErrorCode::bad_option, "{} {}: wanted {}", name, static_cast<int>(value), wanted);
  };
  if (o.precision)
    known("precision", word_of(kPrecisions, *o.precision), *o.precision, "model, f32, bf16 or f16");
  if (o.binding)
    known("binding", word_of(kBindings, *o.binding), *o.binding, "processors, numa_nodes or none");
  known("execution_mode", word_of(kModes, o.execution_mode), o.execution_mode,
        "none, performance or accuracy");
  known("hint", word_of(kHints, o.hint), o.hint, "none, latency, throughput or cumulative_throughput");
  known("hyper_threading", word_of(kHyperThreading, o.hyper_threading), o.hyper_threading,
        "automatic, on or off");
  known("cache_mode", word_of(kCacheModes, o.cache_mode), o.cache_mode, "speed or size");
  known("cores", word_of(kCores, o.cores), o.cores, "any, performance or efficient");
}

void Options::set(std::string_view key, std::string_view value) {
  guarded("Options::set", [&] {
    const auto* const row = find_option(key);
    if (row == nullptr) refuse_key(key);
    auto word = value;
    std::string upper;
    if (row->words) {
      upper = upper_case(value);
      word = upper;
      for (const std::string_view prefix : {"KEY_", "CPU_THROUGHPUT_"})
        if (word.starts_with(prefix)) word.remove_prefix(prefix.size());
    }
    auto changed = *this;
    if (!row->set(changed, word))
      fail(ErrorCode::bad_option, "{}: \"{}\", wanted {}", key, value, row->info.values);
    changed.given.insert(row->setting);
    *this = std::move(changed);
  });
}

std::vector<OptionInfo> option_list() {
  return guarded("option_list", [] {
    std::vector<OptionInfo> out;
    for (const auto& row : option_rows()) out.push_back(row.info);
    return out;
  });
}

}  // namespace lamina
