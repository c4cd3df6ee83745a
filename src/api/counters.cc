#include "api/counters.h"

#include <unordered_map>

#include "api/fate.h"

namespace lamina {
namespace {

using Plans = std::vector<std::shared_ptr<const Plan>>;
using Counts = std::unordered_map<const PlanStep*, StepCount>;

/// Adds one step to a row; a row may have several.
void add(LayerCounter& row, const StepCount& count) {
  row.runs = std::max(row.runs, count.runs);
  row.last_us += count.last;
  row.average_us += count.sum / static_cast<double>(count.runs);
  row.min_us += count.least;
  row.cpu_us += count.cpu / static_cast<double>(count.runs);
}

/// The steps that a layer is named by; what others do for it is theirs.
void add_steps(LayerCounter& row, const Fate& fate, const Counts& counts) {
  for (const auto& node : fate.nodes) {
    if (!node.chief || node.step == nullptr) continue;
    const auto it = counts.find(node.step);
    if (it == counts.end() || it->second.runs == 0) continue;
    if (row.runs == 0) row.kernel = node.step->label;
    add(row, it->second);
  }
}

/// A layer in a branch that no run has taken.
bool passed_over(const Fate& fate, const Counts& counts) {
  const auto it = counts.find(fate.branching);
  return it != counts.end() && it->second.branches.at(fate.branch) == 0;
}

LayerCounter row_of(const Fate& fate, const std::vector<Fate>& all, const Counts& counts, bool ran) {
  LayerCounter row{.name = fate.name, .type = fate.type, .kernel = "undef"};
  using Kind = Fate::Kind;
  if (!ran || fate.kind == Kind::waiting || passed_over(fate, counts)) return row;
  row.status = LayerStatus::optimized_out;
  if (fate.kind == Kind::runs) {
    add_steps(row, fate, counts);
    row.status = row.runs > 0 ? LayerStatus::executed : LayerStatus::not_run;
  } else if (fate.kind == Kind::fused) {
    const auto by = fate.nodes[0].by;
    if (by.index < all.size()) row.into = all[by.index].name;
  } else if (fate.kind == Kind::body) {
    row.into = fate.inside;
  }
  return row;
}

/// Where a tensor comes from: a layer, or an input.
std::string maker_of(const Plan& plan, const PlanTensor& t) {
  const auto node = plan.graph.producer(t.value);
  return node.valid() ? plan.graph.label(node) : plan.graph.value(t.value).name;
}

/// Who reads it: a layer, else what it is.
std::string reader_of(const Plan& plan, std::uint32_t tensor) {
  for (const auto& step : plan.steps)
    for (const auto t : step.in)
      if (t == tensor && step.kind != PlanStep::Kind::reorder) return step.name;
  for (std::size_t r = 0; r < plan.results.size(); ++r)
    if (plan.results[r] != kNoTensor && plan.tensors[plan.results[r]].root == plan.tensors[tensor].root)
      return plan.graph.results()[r].name;
  return plan.graph.value(plan.tensors[tensor].value).name;
}

void add_reorders(std::vector<LayerCounter>& out, const Plan& plan, const Counts& counts) {
  for (const auto& step : plan.steps) {
    if (step.kind != PlanStep::Kind::reorder && step.kind != PlanStep::Kind::copy) continue;
    const auto &from = plan.tensors[step.in.at(0)], &to = plan.tensors[step.out.at(0)];
    LayerCounter row{.name = fmt::format("{}_{}_{}_{}", maker_of(plan, from), name_of(from.layout),
                                         name_of(to.layout), reader_of(plan, step.out[0])),
                     .type = "Reorder",
                     .kernel = "undef"};
    if (const auto it = counts.find(&step); it != counts.end() && it->second.runs > 0) {
      row.kernel = step.label;
      row.status = LayerStatus::executed;
      add(row, it->second);
    }
    out.push_back(std::move(row));
  }
}

}  // namespace

std::vector<LayerCounter> counters_of(const Compiled& compiled, const Runner& runner) {
  const auto plans = runner.plans();
  Counts counts;
  for (const auto& count : runner.counts()) counts.emplace(count.step, count);
  std::vector<LayerCounter> out;
  const auto fates = fates_of(compiled, plans);
  for (const auto& fate : fates) out.push_back(row_of(fate, fates, counts, !plans.empty()));
  for (const auto& plan : plans) add_reorders(out, *plan, counts);
  return out;
}

}  // namespace lamina
