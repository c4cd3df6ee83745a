#include "exec/step_counts.h"

#include <algorithm>

namespace lamina {
namespace {

NodeName name_of_node(const Graph& g, NodeId id) {
  const auto& n = g.node(id);
  return {g.label(id), n.op.name(), n.sources};
}

/// A node, or an input of the graph.
NodeName maker_of(const Plan& plan, ValueId v) {
  const auto node = plan.graph.producer(v);
  return node.valid() ? name_of_node(plan.graph, node) : NodeName{plan.graph.value(v).name, {}, {}};
}

/// The reader of a tensor: a node, else the model's output or the value that it is.
NodeName reader_of(const Plan& plan, std::uint32_t tensor) {
  for (const auto& step : plan.steps)
    if (step.node.valid() && std::find(step.in.begin(), step.in.end(), tensor) != step.in.end())
      return name_of_node(plan.graph, step.node);
  for (std::size_t r = 0; r < plan.results.size(); ++r)
    if (plan.results[r] != kNoTensor && plan.tensors[plan.results[r]].root == plan.tensors[tensor].root)
      return {plan.graph.results()[r].name, {}, {}};
  return {plan.graph.value(plan.tensors[tensor].value).name, {}, {}};
}

StepCount described(const Plan& plan, const PlanStep& step) {
  StepCount c;
  c.moves = !step.runs_a_node();
  if (!c.moves) {
    c.node = name_of_node(plan.graph, step.node);
    return c;
  }
  const auto &from = plan.tensors[step.in.at(0)], &to = plan.tensors[step.out.at(0)];
  c.node = maker_of(plan, from.value);
  c.reader = reader_of(plan, step.out[0]);
  c.from = from.layout;
  c.to = to.layout;
  return c;
}

}  // namespace

StepCounts::Slots StepCounts::slots_of(const Plan& plan, std::size_t depth) {
  Slots out;
  std::map<Key, std::size_t> met;
  for (const auto& step : plan.steps) {
    auto count = described(plan, step);
    Key key(count.node.name, count.moves ? "to " + count.reader.name : "", count.from, count.to, depth, 0);
    const auto nth = met[key]++;
    std::get<5>(key) = nth;
    out.push_back({entry_of(key, std::move(count)), label_of(step.label)});
  }
  return out;
}

std::uint32_t StepCounts::entry_of(const Key& key, StepCount count) {
  const auto [it, fresh] = by_key_.try_emplace(key, static_cast<std::uint32_t>(steps_.size()));
  if (fresh) {
    figures_.emplace_back();
    steps_.push_back(std::move(count));
  } else if (!count.moves) {
    steps_[it->second].node = std::move(count.node);
  }
  return it->second;
}

std::uint32_t StepCounts::label_of(const std::string& label) {
  const auto at = std::find(labels_.begin(), labels_.end(), label) - labels_.begin();
  if (static_cast<std::size_t>(at) == labels_.size()) labels_.push_back(label);
  return static_cast<std::uint32_t>(at);
}

void StepCounts::add(const Slots& slots, const StepTimes& times) {
  const auto last = times.last();
  for (std::size_t s = 0; s < last.size(); ++s) {
    auto& f = figures_[slots[s].count];
    const double us = last[s].microseconds;
    f.last = us;
    f.sum += us;
    f.least = f.runs == 0 ? us : std::min(f.least, us);
    f.cpu += last[s].cpu_microseconds;
    ++f.runs;
    f.last_run = runs_;
    f.label = slots[s].label;
  }
  for (const auto& control : times.controls()) {
    auto& inside = steps_[slots[control.step].count].inside;
    if (inside.size() < control.layers.size()) inside.resize(control.layers.size());
    for (std::size_t i = 0; i < control.layers.size(); ++i) inside[i] |= control.layers[i];
  }
}

void StepCounts::forget() noexcept {
  runs_ = 0;
  std::fill(figures_.begin(), figures_.end(), Figures{});
  for (auto& step : steps_) step.inside.clear();
}

std::vector<StepCount> StepCounts::all() const {
  std::vector<StepCount> out;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const auto& f = figures_[i];
    if (f.runs == 0) continue;
    auto& c = out.emplace_back(steps_[i]);
    c.kernel = labels_[f.label];
    c.runs = f.runs;
    c.all_runs = runs_;
    c.latest = f.last_run == runs_;
    c.last = c.latest ? f.last : 0;
    c.sum = f.sum;
    c.least = f.least;
    c.cpu = f.cpu;
  }
  return out;
}

}  // namespace lamina
