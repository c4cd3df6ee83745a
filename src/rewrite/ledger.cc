#include "rewrite/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lamina {

std::string to_string(const LedgerEntry& e) {
  switch (e.kind) {
    case LedgerEntry::Kind::fired:
      return fmt::format("{} at '{}': {}", e.rule, e.node, e.text);
    case LedgerEntry::Kind::refused:
      return fmt::format("{} at '{}': refused: {}", e.rule, e.node, e.text);
    default:
      return fmt::format("{}: '{}' removed: {}", e.rule, e.node, e.text);
  }
}

RuleId Ledger::rule(std::string_view name) {
  const auto at = std::find(rules_.begin(), rules_.end(), name) - rules_.begin();
  if (at == std::ssize(rules_)) {
    rules_.emplace_back(name);
    counts_.emplace_back();
  }
  return {static_cast<std::uint32_t>(at)};
}

void Ledger::fired(RuleId rule, Subject subject, std::string became) {
  ++rewrites_;
  done_.push_back({LedgerEntry::Kind::fired, rule, std::move(subject), std::move(became), next_++});
}

void Ledger::refused(RuleId rule, const NodePath& path, Subject subject, std::string reason) {
  ++counts_[rule.index].refusals;
  refusals_.insert_or_assign(
      {path, rule}, Record{LedgerEntry::Kind::refused, rule, std::move(subject), std::move(reason), next_++});
}

void Ledger::forget(const NodePath& path) {
  const auto first = refusals_.lower_bound({path, RuleId{0}});
  auto last = first;
  while (last != refusals_.end() && last->first.first.size() >= path.size() &&
         std::equal(path.begin(), path.end(), last->first.first.begin())) {
    auto& r = last->second;
    for (const auto s : std::exchange(r.subject.sources, {})) {
      auto kept = r;
      kept.subject.sources = {s};
      former_.insert_or_assign({r.rule, s}, std::move(kept));
    }
    ++last;
  }
  refusals_.erase(first, last);
}

void Ledger::removed(RuleId rule, SourceId source, std::string reason) {
  done_.push_back(
      {LedgerEntry::Kind::removed, rule, {sources_.at(source), {source}}, std::move(reason), next_++});
}

LedgerEntry Ledger::printed(const Record& r) const {
  LedgerEntry out{r.kind, rules_[r.rule.index], r.subject.node, {}, r.subject.sources, r.text, r.order,
                  false};
  for (const auto s : r.subject.sources) out.sources.push_back(sources_.at(s));
  return out;
}

template <class F>
std::vector<LedgerEntry> Ledger::entries_where(F&& wanted) const {
  std::vector<const Record*> found;
  for (const auto& record : done_)
    if (wanted(record)) found.push_back(&record);
  for (const auto& [key, record] : refusals_)
    if (wanted(record)) found.push_back(&record);
  std::sort(found.begin(), found.end(), [](const auto* a, const auto* b) { return a->order < b->order; });
  std::vector<LedgerEntry> out;
  for (const auto* record : found) out.push_back(printed(*record));
  return out;
}

std::vector<LedgerEntry> Ledger::entries() const {
  return entries_where([](const Record&) { return true; });
}

std::vector<LedgerEntry> Ledger::entries(LedgerEntry::Kind kind) const {
  return entries_where([&](const Record& r) { return r.kind == kind; });
}

std::vector<LedgerEntry> Ledger::about(std::string_view name) const {
  return entries_where([&](const Record& r) {
    return r.subject.node == name || std::any_of(r.subject.sources.begin(), r.subject.sources.end(),
                                                 [&](SourceId s) { return sources_.at(s) == name; });
  });
}

std::vector<LedgerEntry> Ledger::of_rule(std::string_view rule) const {
  return entries_where([&](const Record& r) { return rules_[r.rule.index] == rule; });
}

std::optional<LedgerEntry> Ledger::former_refusal(std::string_view rule, SourceId layer) const {
  const auto at = std::find(rules_.begin(), rules_.end(), rule) - rules_.begin();
  const auto it = former_.find({RuleId{static_cast<std::uint32_t>(at)}, layer});
  return it == former_.end() ? std::nullopt : std::optional(printed(it->second));
}

std::vector<LedgerEntry> Ledger::former_refusals() const {
  auto last = former_;
  std::vector<bool> concerned(rules_.size());
  for (const auto& [key, record] : last) concerned[key.first.index] = true;
  const auto outdate = [&](const Record& newer) {
    if (!concerned[newer.rule.index]) return;
    for (const auto s : newer.subject.sources)
      if (const auto it = last.find({newer.rule, s}); it != last.end() && it->second.order < newer.order)
        last.erase(it);
  };
  for (const auto& record : done_) outdate(record);
  for (const auto& [key, record] : refusals_) outdate(record);
  std::vector<LedgerEntry> out;
  for (const auto& [key, record] : last) {
    out.push_back(printed(record));
    out.back().former = true;
  }
  return out;
}

std::map<std::string, Ledger::Count> Ledger::counts() const {
  std::map<std::string, Count> out;
  for (std::size_t i = 0; i < rules_.size(); ++i)
    if (counts_[i].tries != 0) out[rules_[i]] = counts_[i];
  return out;
}

}  // namespace lamina
