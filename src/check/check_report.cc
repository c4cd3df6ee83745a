/// What there is to say about a check: lines, a document.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/guard.h"
#include "base/json_text.h"
#include "check/difference.h"
#include "lamina/check.h"

namespace lamina {
namespace {

const char* word_of(bool ok) { return ok ? "ok  " : "FAIL"; }

std::string drift_in_words(const CheckedDifference& d) {
  if (!d.comparable) return "it has another shape";
  if (d.largest == 0 && d.max == 0 && d.mismatches == 0) return "none";
  if (d.largest == 0 && d.mismatches > 0)  // integers
    return fmt::format("{} elements differ, by {:.3g} at most", d.mismatches, d.max);
  return fmt::format("max {:.3g}, mean {:.2g}, of at most {:.3g}", d.max, d.mean, d.largest);
}

std::string line_of(const CustomLayerTrial& t) {
  const auto& text = t.ok() ? t.note : t.problem;
  return fmt::format("{}  {:<40} {}: {}{}{}", t.skipped ? "none" : word_of(t.ok()), t.node, t.op, t.tried,
                     text.empty() ? "" : ": ", text);
}

std::string line_of(const CheckedValue& v) {
  return fmt::format("{}  {:<40} {:<57} {}", word_of(v.ok()), v.name, "rewritten: " + v.made_by,
                     v.problem.empty() ? checking::to_string(v.difference) : v.problem);
}

std::string line_of(const CheckedLayer& l) {
  return fmt::format("{}  {:<40} {:<24} {:<32} {}", word_of(l.ok()), l.name, l.op, l.kernel,
                     l.note.empty() ? checking::to_string(l.difference) : l.note);
}

std::string line_of(const CheckedOutput& o) {
  if (!o.note.empty()) return fmt::format("none  output {}: {}", o.name, o.note);
  return fmt::format("{}  output {} against the {}: {}", word_of(o.ok()), o.name, o.against,
                     o.agreement ? o.agreement->text : checking::to_string(o.difference));
}

std::string line_of(const PrecisionDrift& d) {
  return fmt::format("drift output {} against {}: {}", d.name, d.against, drift_in_words(d.difference));
}

std::string line_of(const BisectedRewrite& b) {
  if (!b.rewrite.empty())
    return fmt::format("bisect: rewrite {} of {} changes \"{}\": {}", b.number, b.total, b.value, b.rewrite);
  return b.in_planning
             ? fmt::format("bisect: none of the {} rewrites changes a value, but planning does", b.total)
             : fmt::format("bisect: none of the {} rewrites changes the result", b.total);
}

template <class Row>
std::size_t count_wrong(const std::vector<Row>& rows) {
  return static_cast<std::size_t>(
      std::count_if(rows.begin(), rows.end(), [](const auto& row) { return !row.ok(); }));
}

const char* verdict_of(std::size_t faults) { return faults == 0 ? "clean" : "NOT clean"; }

std::string sum_of_trials(const CheckReport& r) {
  const auto& trials = *r.extensions;
  const auto wrong = count_wrong(trials);
  if (!r.model.empty())
    return fmt::format("{}: {} trials of custom layers, {} wrong", verdict_of(wrong), trials.size(), wrong);
  std::set<std::string> tried;
  for (const auto& t : trials)
    if (!t.skipped) tried.insert(t.op);
  return fmt::format("{}: {} of {} operations tried, {} trials, {} wrong", verdict_of(wrong), tried.size(),
                     r.operations, trials.size(), wrong);
}

/// Numbers that are not finite become null when the document is written.
nlohmann::json json_of(const CheckedDifference& d) {
  return {{"within", d.within},
          {"max", d.max},
          {"mean", d.mean},
          {"limit", d.limit},
          {"mismatches", d.mismatches},
          {"undecided", d.undecided}};
}

nlohmann::json json_of(const StoredAgreement& a) {
  nlohmann::json j{{"snr_db", a.snr_db},
                   {"wanted_snr_db", a.wanted_snr_db},
                   {"cosine", a.cosine},
                   {"largest_error", a.largest_error},
                   {"allowed_error", a.allowed_error},
                   {"at", a.at},
                   {"mismatches", a.mismatches},
                   {"count", a.count},
                   {"fault", a.fault}};
  if (a.score_loss) j["score_loss"] = a.score_loss->largest, j["allowed_score_loss"] = a.score_loss->allowed;
  if (a.ranking)
    j["ranking"] = {{"rows", a.ranking->rows}, {"top1", a.ranking->top1}, {"top5", a.ranking->top5}};
  return j;
}

nlohmann::json json_of(const CustomLayerTrial& t) {
  return {{"node", t.node},       {"op", t.op},     {"tried", t.tried},    {"within", t.ok()},
          {"skipped", t.skipped}, {"note", t.note}, {"problem", t.problem}};
}

nlohmann::json json_of(const CheckedValue& v) {
  auto row = json_of(v.difference);
  row["within"] = v.ok();
  row["name"] = v.name, row["made_by"] = v.made_by, row["problem"] = v.problem;
  return row;
}

nlohmann::json json_of(const CheckedLayer& l) {
  auto row = json_of(l.difference);
  row["name"] = l.name, row["op"] = l.op, row["kernel"] = l.kernel, row["note"] = l.note;
  return row;
}

nlohmann::json json_of(const CheckedOutput& o) {
  auto row = json_of(o.difference);
  row["name"] = o.name, row["against"] = o.against, row["note"] = o.note;
  if (o.agreement) row["agreement"] = json_of(*o.agreement);
  return row;
}

nlohmann::json json_of(const PrecisionDrift& d) {
  return {{"name", d.name},
          {"against", d.against},
          {"max", d.difference.max},
          {"mean", d.difference.mean},
          {"largest", d.difference.largest},
          {"mismatches", d.difference.mismatches}};
}

nlohmann::json json_of(const BisectedRewrite& b) {
  if (b.in_planning) return "planning";
  if (b.rewrite.empty()) return nullptr;
  return {{"number", b.number}, {"total", b.total}, {"value", b.value}, {"rewrite", b.rewrite}};
}

template <class Row>
nlohmann::json list_of(const std::vector<Row>& rows) {
  auto out = nlohmann::json::array();
  for (const auto& row : rows) out.push_back(json_of(row));
  return out;
}

}  // namespace

std::size_t CheckReport::faults() const {
  return guarded("CheckReport::faults", [&] {
    return (extensions ? count_wrong(*extensions) : 0) + count_wrong(values) + count_wrong(layers) +
           count_wrong(outputs);
  });
}

std::vector<std::string> CheckReport::lines(bool all) const {
  return guarded("CheckReport::lines", [&] {
    std::vector<std::string> out;
    if (extensions) {
      for (const auto& t : *extensions)
        if (all || !t.ok() || t.skipped) out.push_back(line_of(t));
      out.push_back(sum_of_trials(*this));
    }
    if (!ran) return out;
    for (const auto& v : values)
      if (all || !v.ok()) out.push_back(line_of(v));
    for (const auto& l : layers)
      if (all || !l.ok()) out.push_back(line_of(l));
    for (const auto& o : outputs) out.push_back(line_of(o));
    for (const auto& d : drifts) out.push_back(line_of(d));
    if (bf16_unused) out.emplace_back("drift none: nothing is in bf16");
    out.push_back("precision   " + precision);
    if (bisect) out.push_back(line_of(*bisect));
    const auto wrong = count_wrong(values) + count_wrong(layers) + count_wrong(outputs);
    out.push_back(fmt::format("{}: {} values of the model and {} layers checked, {} wrong", verdict_of(wrong),
                              values.size(), layers.size(), wrong));
    return out;
  });
}

std::string CheckReport::json() const {
  return guarded("CheckReport::json", [&] {
    nlohmann::json j{{"model", model.empty() ? nlohmann::json() : nlohmann::json(model)},
                     {"extensions", extensions ? list_of(*extensions) : nlohmann::json::array()},
                     {"clean", clean}};
    if (ran) {
      j["rewriting"] = list_of(values);
      j["layers"] = list_of(layers);
      j["outputs"] = list_of(outputs);
      j["drift"] = list_of(drifts);
      j["precision"] = precision;
      if (bisect) j["bisect"] = json_of(*bisect);
    }
    return json_text(j);
  });
}

}  // namespace lamina
