/// The table of options, shared by the API and the tool.
#include "lamina/options.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "base/cpu.h"
#include "base/error.h"
#include "base/guard.h"
#include "base/nearest.h"
#include "base/numbers.h"

namespace lamina {
namespace {

struct Row {
  OptionInfo info;
  /// False for a bad value, which changes nothing.
  std::function<bool(Options&, std::string_view)> set;
};

std::vector<std::string> list(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const auto comma = text.find(',');
    if (comma != 0) out.emplace_back(text.substr(0, comma));
    text = comma == std::string_view::npos ? "" : text.substr(comma + 1);
  }
  return out;
}

std::optional<std::int64_t> whole(std::string_view text, std::int64_t low, std::int64_t high) {
  const auto v = parse_integer<std::int64_t>(text);
  return v && *v >= low && *v <= high ? v : std::nullopt;
}

bool yes_no(std::string_view text, bool& out) {
  if (text == "YES" || text == "true" || text == "1")
    out = true;
  else if (text == "NO" || text == "false" || text == "0")
    out = false;
  else
    return false;
  return true;
}

bool word(std::string_view text, std::initializer_list<std::string_view> words, std::string& out) {
  if (std::find(words.begin(), words.end(), text) == words.end()) return false;
  out = text;
  return true;
}

const std::vector<Row>& rows() {
  static const std::vector<Row> table = [] {
    std::vector<Row> t;
    const auto threads = [](Options& o, std::string_view v) {
      const auto n = v == "AUTO" ? std::optional<std::int64_t>(0) : whole(v, 0, 1024);
      if (n) o.threads = static_cast<int>(*n);
      return n.has_value();
    };
    t.push_back({{"CPU_THREADS_NUM", "0 to 1024, AUTO", "threads of one request; 0: what the machine allows"},
                 threads});
    t.push_back({{"INFERENCE_NUM_THREADS", "0 to 1024, AUTO", "the same as CPU_THREADS_NUM"}, threads});
    t.push_back({{"PERF_COUNT", "YES, NO", "times every layer"},
                 [](Options& o, std::string_view v) { return yes_no(v, o.profile); }});
    t.push_back({{"ENFORCE_BF16", "YES, NO",
                  "bf16 for everything (without effect until bf16 exists; the log says so)"},
                 [](Options& o, std::string_view v) {
                   bool on = false;
                   if (!yes_no(v, on)) return false;
                   o.precision = on ? Precision::bf16 : Precision::model;
                   return true;
                 }});
    t.push_back({{"INFERENCE_PRECISION_HINT", "model, f32, bf16", "precision of computing"},
                 [](Options& o, std::string_view v) {
                   if (v == "model")
                     o.precision = Precision::model;
                   else if (v == "f32")
                     o.precision = Precision::f32;
                   else if (v == "bf16")
                     o.precision = Precision::bf16;
                   else
                     return false;
                   return true;
                 }});
    t.push_back(
        {{"DISABLE", "RULE[,RULE], all", "optimisations to leave out"}, [](Options& o, std::string_view v) {
           o.disable = list(v);
           return true;
         }});
    t.push_back({{"EXEMPT", "NAME_OR_REGEX[,...]",
                  "nodes that no optimisation touches (RE2's syntax, for the whole name)"},
                 [](Options& o, std::string_view v) {
                   o.exempt = list(v);
                   return true;
                 }});
    t.push_back(
        {{"FORCE", "NODE=LABEL[,OPERATOR=LABEL,...]", "kernels that are wanted, whatever is estimated"},
         [](Options& o, std::string_view v) {
           auto wishes = list(v);
           for (const auto& wish : wishes)
             if (const auto at = wish.rfind('='); at == 0 || at >= wish.size() - 1) return false;
           if (wishes.empty()) return false;
           o.force = std::move(wishes);
           return true;
         }});
    t.push_back({{"MAX_ISA", "sse41, avx2, avx512, native", "highest instruction set, for the whole process"},
                 [](Options& o, std::string_view v) {
                   return word(v, {"sse41", "avx2", "avx512", "native"}, o.max_isa);
                 }});
    t.push_back({{"STOP_AFTER", "-1 or more", "stop after that many rewrites of the graph"},
                 [](Options& o, std::string_view v) {
                   const auto n = whole(v, -1, std::numeric_limits<long>::max());
                   if (n) o.stop_after = static_cast<long>(*n);
                   return n.has_value();
                 }});
    t.push_back({{"CACHED_PLANS", "1 to 1000", "plans kept in memory, one per combination of shapes"},
                 [](Options& o, std::string_view v) {
                   const auto n = whole(v, 1, 1000);
                   if (n) o.cached_plans = static_cast<std::size_t>(*n);
                   return n.has_value();
                 }});
    t.push_back({{"KEEP_WEIGHTS", "YES, NO", "keeps the weights as they were read beside the packed ones"},
                 [](Options& o, std::string_view v) { return yes_no(v, o.keep_weights); }});
    return t;
  }();
  return table;
}

}  // namespace

void Options::set(std::string_view key, std::string_view value) {
  guarded("Options::set", [&] {
    std::string_view bare = key;
    if (bare.starts_with("KEY_")) bare.remove_prefix(4);
    for (const auto& row : rows()) {
      if (row.info.key != bare) continue;
      if (!row.set(*this, value))
        fail(ErrorCode::bad_option, "{}: \"{}\", wanted {}", key, value, row.info.values);
      return;
    }
    std::vector<std::string> keys;
    for (const auto& row : rows()) keys.push_back(row.info.key);
    fail(ErrorCode::bad_option, "option \"{}\" is not known{}", key, did_you_mean(bare, keys));
  });
}

std::vector<OptionInfo> option_list() {
  return guarded("option_list", [] {
    std::vector<OptionInfo> out;
    for (const auto& row : rows()) out.push_back(row.info);
    return out;
  });
}

}  // namespace lamina
