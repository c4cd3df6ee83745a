/// Finds the conditions, and their sides, of nodes between Switch and Merge.
#include <algorithm>

#include "base/error.h"
#include "formats/reading_points.h"
#include "formats/tensorflow/links.h"

namespace lamina::tensorflow {
namespace {

/// A Switch of a loop sends what goes on one way and what leaves another; it is no condition.
bool is_of_loop(const GraphDef& graph, const LinkedNode& node) {
  return node.inputs.size() == 2 && graph.nodes[node.inputs[1].node].op == "LoopCond";
}

}  // namespace

Branches::Branches(const GraphDef& graph, const Links& links, std::vector<std::optional<bool>> values)
    : graph_(graph),
      links_(links),
      dead_nodes_(links.size()),
      values_(std::move(values)),
      origins_(links.size()),
      conditions_(links.size()),
      pivots_(links.size()) {
  values_.resize(links.size());
  for (auto n : links.order()) visit(n);
}

std::optional<bool> Branches::value_of(Ref ref) const {
  return ref.port == 0 ? values_[ref.node] : std::nullopt;
}

void Branches::visit(std::uint32_t n) {
  note_read(kReadOfNode * (1 + links_[n].inputs.size() + links_[n].controls.size()));
  origins_[n] = {n, 0};
  const auto op = graph_.nodes[n].op;
  if (is_merge(op)) return visit_merge(n);
  const auto& node = links_[n];
  dead_nodes_[n] = std::any_of(node.inputs.begin(), node.inputs.end(), [&](Ref r) { return dead(r); }) ||
                   std::any_of(node.controls.begin(), node.controls.end(), [&](auto c) { return dead(c); });
  conditions_[n] = of_inputs(n);
  if (is_switch(op)) return visit_switch(n);
  if (node.inputs.size() == 2 && (op == "LogicalAnd" || op == "LogicalOr")) {
    const bool decides = op == "LogicalOr";  // whatever the other operand is
    const auto a = value_of(node.inputs[0]), b = value_of(node.inputs[1]);
    if (a == decides || b == decides)
      values_[n] = decides;
    else if (a && b)
      values_[n] = !decides;
  }
  if (node.inputs.size() != 1) return;
  const auto from = node.inputs[0];
  if (op == "Identity" || op == "StopGradient") {
    values_[n] = value_of(from);
    origins_[n] = from.port == 0 ? origins_[from.node] : from;
    pivots_[n] = pivots_[from.node];
  } else if (op == "LogicalNot") {
    if (const auto v = value_of(from)) values_[n] = !*v;
  }
}

/// Data, condition: output 0 lives where that is false, output 1 where it is true.
void Branches::visit_switch(std::uint32_t n) {
  const auto& inputs = links_[n].inputs;
  if (inputs.size() != 2)
    fail(ErrorCode::bad_file, "node \"{}\" (Switch) has {} inputs, wanted 2", graph_.nodes[n].name,
         inputs.size());
  if (is_of_loop(graph_, links_[n])) return;
  pivots_[n] = inputs[0] == inputs[1];
  if (const auto v = value_of(inputs[1])) dead_ports_.insert({n, *v ? 0u : 1u});
}

Branches::Conditions Branches::of(Ref ref) const {
  auto base = conditions_[ref.node];
  if (!is_switch(graph_.nodes[ref.node].op) || is_of_loop(graph_, links_[ref.node])) return base;
  const auto condition = links_[ref.node].inputs[1];
  if (value_of(condition)) return base;
  std::vector<Condition> more;
  if (base) more = *base;
  const Condition added{condition.port == 0 ? origins_[condition.node] : condition, ref.port == 1};
  if (std::find(more.begin(), more.end(), added) != more.end()) return base;
  more.push_back(added);
  return std::make_shared<const std::vector<Condition>>(std::move(more));
}

/// All conditions of all inputs, in order of first appearance.
Branches::Conditions Branches::of_inputs(std::uint32_t n) const {
  Conditions all;
  const auto join = [&](const Conditions& some) {
    if (!some || some == all) return;
    if (all) {
      std::vector<Condition> joined = *all;
      for (const auto& c : *some)
        if (std::find(joined.begin(), joined.end(), c) == joined.end()) joined.push_back(c);
      all = std::make_shared<const std::vector<Condition>>(std::move(joined));
    } else {
      all = some;
    }
    if (all->size() > kMostConditions)
      fail(ErrorCode::bad_file, "node \"{}\" ({}) is behind more than {} conditions", graph_.nodes[n].name,
           graph_.nodes[n].op, kMostConditions);
  };
  for (auto ref : links_[n].inputs) join(of(ref));
  // A node that only waits for a Switch is on both sides; what its branches wait for are Identity nodes.
  for (auto c : links_[n].controls)
    if (!is_switch(graph_.nodes[c].op)) join(conditions_[c]);
  return all;
}

/// What both sides have in common; the innermost of the others decides.
void Branches::visit_merge(std::uint32_t n) {
  const auto& inputs = links_[n].inputs;
  std::vector<Ref> live;
  for (auto r : inputs)
    if (!dead(r) && !is_next(graph_.nodes[r.node].op)) live.push_back(r);
  dead_nodes_[n] = live.empty();
  if (live.empty()) return;
  conditions_[n] = of(live[0]);
  if (live.size() != 2 || inputs.size() != 2) return;
  const auto a = of(live[0]), b = of(live[1]);
  conditions_[n] = nullptr;
  if (!a || !b) return;
  std::vector<Condition> common;
  for (const auto& c : *a) {
    if (std::find(b->begin(), b->end(), c) != b->end()) common.push_back(c);
    if (std::find(b->begin(), b->end(), Condition{c.first, !c.second}) != b->end())
      choices_[n] = {c.first, c.second};
  }
  if (!common.empty()) conditions_[n] = std::make_shared<const std::vector<Condition>>(std::move(common));
}

std::optional<Branches::Choice> Branches::choice(std::uint32_t merge) const {
  const auto it = choices_.find(merge);
  return it == choices_.end() ? std::nullopt : std::optional(it->second);
}

}  // namespace lamina::tensorflow
