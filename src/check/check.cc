#include "check/check.h"

#include <algorithm>
#include <map>

#include "check/choices.h"
#include "check/replay.h"
#include "check/rounding.h"
#include "check/stored_outputs.h"
#include "exec/single_step.h"
#include "extension/custom_op.h"
#include "interpreter/interpreter.h"
#include "ops/repeated_draws.h"

namespace lamina::checking {
namespace {

/// What rounding may change is no difference.
Difference judged(const Graph& g, NodeId id, const std::vector<Tensor>& in, const Tensor& got,
                  const Tensor& wanted) {
  auto d = difference(got, wanted);
  if (!d.within && d.comparable)
    if (const auto slack = undecided(g, id, in, wanted)) grant(d, got, wanted, *slack);
  return d;
}

bool is_impure_custom(const Node& n) { return custom_op(n.op) && n.op.has(Trait::impure); }

/// A custom layer that says that it is not pure, or one in its bodies.
bool has_impure_custom(const Node& n) {
  const auto any = [](const Graph& body) {
    const auto order = body.order();
    return std::any_of(order.begin(), order.end(),
                       [&](NodeId id) { return has_impure_custom(body.node(id)); });
  };
  return is_impure_custom(n) || std::any_of(n.bodies.begin(), n.bodies.end(), any);
}

/// For each result why it is not compared, or nothing.
std::vector<std::string> why_not_compared(const Graph& g) {
  std::vector<std::string> of_value(g.value_slots());
  for (const auto id : g.order()) {
    const auto& n = g.node(id);
    std::string why;
    if (has_impure_custom(n)) why = fmt::format("not compared: '{}' says that it is not pure", g.label(id));
    for (const auto v : n.inputs)
      if (why.empty() && v.valid()) why = of_value[v.index];
    for (const auto v : n.outputs) of_value[v.index] = why;
  }
  std::vector<std::string> out;
  for (const auto& r : g.results()) out.push_back(of_value[r.value.index]);
  return out;
}

constexpr const char* kNotPure = "not compared: the operation says that it is not pure";

/// Every step of the plan on the interpreter's own inputs.
auto steps_of(const Plan& plan, std::vector<LayerCheck>& rows) {
  std::map<NodeId, const PlanStep*> steps;
  for (const auto& s : plan.steps)
    if (s.kind == PlanStep::Kind::kernel) steps[s.node] = &s;
  return [&plan, &rows, steps](NodeId node, const Graph& g, NodeId id, const std::vector<Tensor>& in,
                               const std::vector<Tensor>& out) {
    const auto it = steps.find(node);
    if (it == steps.end()) return;
    if (is_impure_custom(g.node(id)))
      rows.push_back({g.label(id), g.node(id).op.name(), it->second->label, {}, kNotPure});
    if (g.node(id).op.has(Trait::impure)) return;
    const auto got = run_single_step(plan, *it->second, in);
    for (std::size_t i = 0; i < got.size(); ++i)
      rows.push_back({g.label(id) + (got.size() > 1 ? fmt::format(" [{}]", i) : ""), g.node(id).op.name(),
                      it->second->label, judged(g, id, in, got[i], out[i])});
  };
}

/// Judges the first part, in two steps if there is a graph between them.
Judgement judge_part(const Run& run, std::size_t p, const RunPart& part, const Graph& rewritten,
                     const JudgeOptions& options) {
  if (p != 0 || !run.with_levels || !quantises(*part.original))
    return judge_rewriting(*part.original, part.inputs, rewritten, options);
  const auto between = run.with_levels();
  auto first = judge_rewriting(*part.original, part.inputs, between);
  auto second = judge_rewriting(between, part.inputs, rewritten, options);
  std::move(second.values.begin(), second.values.end(), std::back_inserter(first.values));
  return first;
}

/// Plan by plan: what rewriting made of the values before, and the kernels. Returns the original's results.
std::vector<Tensor> check_parts(const Run& run, const std::function<void(double)>& progress,
                                Findings& found) {
  const auto& plans = run.plans;
  std::vector<Tensor> results;
  RunPart part{&run.original, run.inputs, nullptr, nullptr};
  for (std::size_t p = 0; p < plans.size(); ++p) {
    const Plan& plan = *plans[p];
    part.plan = plans[p];
    std::map<std::string, Tensor> for_rest;
    if (plan.rest)
      for (const auto v : plan.rest->inputs()) for_rest[plan.rest->value(v).name];
    JudgeOptions options;
    options.observe = steps_of(plan, found.layers);
    options.keep = &for_rest;
    if (progress)
      options.progress = [&](std::size_t done, std::size_t all) {
        progress((static_cast<double>(p) + static_cast<double>(done) / static_cast<double>(all)) /
                 static_cast<double>(plans.size()));
      };
    auto judgement = judge_part(run, p, part, plan.graph, options);
    if (!judgement.clean()) found.wrong.push_back(part);
    if (p == 0) results = std::move(judgement.results);
    std::move(judgement.values.begin(), judgement.values.end(), std::back_inserter(found.values));
    if (!plan.rest) break;
    part = {&*plan.rest, {}, nullptr, plans[p]};
    for (const auto v : plan.rest->inputs()) part.inputs.push_back(for_rest.at(plan.rest->value(v).name));
  }
  return results;
}

/// Checks the parts of a run with bf16. `lowered`: gets the results of the interpreter on the plans' graphs.
/// The rewriting is judged before the conversions, which only round.
std::vector<Tensor> check_bf16_parts(const Run& run, const std::function<void(double)>& progress,
                                     Findings& found, std::vector<Tensor>& lowered) {
  std::vector<std::vector<Tensor>> inputs;
  const auto interpreted = [&](const Plan& plan, NodeId id, const std::vector<Tensor>& in) {
    const auto& g = plan.graph;
    auto out = interpret_node(g.node(id), in);
    const auto* step = step_of(plan, id);
    if (step && is_impure_custom(g.node(id)))
      found.layers.push_back({g.label(id), g.node(id).op.name(), step->label, {}, kNotPure});
    if (!step || g.node(id).op.has(Trait::impure)) return out;
    const auto got = run_single_step(plan, *step, in);
    for (std::size_t i = 0; i < got.size(); ++i)
      found.layers.push_back(
          {g.label(id), g.node(id).op.name(), step->label, judged(g, id, in, got[i], out[i])});
    return out;
  };
  lowered = replay(run.plans, run.inputs, interpreted, &inputs);
  std::vector<Tensor> results;
  RunPart part{&run.original, {}, nullptr, nullptr};
  for (std::size_t p = 0; p < inputs.size(); ++p) {
    part.inputs = inputs[p], part.plan = run.plans[p];
    JudgeOptions options;
    if (progress)
      options.progress = [&](std::size_t done, std::size_t all) {
        progress(static_cast<double>(done) / static_cast<double>(all));
      };
    auto judgement = judge_part(run, p, part, run.before_bf16(part), options);
    if (!judgement.clean()) found.wrong.push_back(part);
    if (p == 0) results = std::move(judgement.results);
    std::move(judgement.values.begin(), judgement.values.end(), std::back_inserter(found.values));
    if (run.plans[p]->rest) part = {&*run.plans[p]->rest, {}, nullptr, run.plans[p]};
  }
  return results;
}

/// True if a layer gave other numbers than the interpreter, and was right to, or rules did, in numbers that
/// are not finite in one of both or that have steps.
bool any_undecided(const Findings& found) {
  return std::any_of(found.layers.begin(), found.layers.end(),
                     [](const LayerCheck& l) { return l.difference.undecided != 0; }) ||
         std::any_of(found.values.begin(), found.values.end(), [](const ValueCheck& v) {
           return v.difference.undecided != 0 && v.difference.mismatches != 0;
         });
}

/// Whole outputs against the reference and against stored ones.
class Outputs {
 public:
  /// `wanted`: what the interpreter gives on the model as it runs, `exact` in f32. `undecided`: layers or
  /// rules gave other numbers than the interpreter, and were right to: what follows from that is in the
  /// outputs.
  Outputs(const Run& run, const std::vector<Tensor>& wanted, const std::vector<Tensor>& exact, bool undecided)
      : run_(run),
        wanted_(wanted),
        bf16_(run.before_bf16),
        quantised_(bf16_ || quantises(run.original)),
        tolerance_(run.half || bf16_ ? kOfHalf : kOfKernels),
        undecided_(undecided),
        chosen_(chosen_results(run.original)),
        stored_(run.original, run.inputs, exact, run.half, bf16_) {}

  std::vector<OutputCheck> check() {
    const auto why_not = why_not_compared(run_.original);
    for (std::size_t i = 0; i < run_.outputs.size(); ++i) {
      if (!why_not.at(i).empty()) {
        rows_.push_back({run_.outputs[i].name, "interpreter", {}, why_not[i]});
        continue;
      }
      check_own(i);
      if (run_.outputs[i].stored.valid()) check_stored(i);
    }
    return std::move(rows_);
  }

 private:
  void check_own(std::size_t i) {
    const auto& output = run_.outputs[i];
    const auto d = difference(output.got, wanted_.at(i), tolerance_);
    if (d.within || (!quantised_ && !undecided_ && !chosen_.at(i))) {
      rows_.push_back({output.name, bf16_ ? "interpreter with bf16" : "interpreter", d});
      return;
    }
    if (replayed_.empty()) replayed_ = replay(run_.plans, run_.inputs);
    rows_.push_back({output.name, "layers one by one", difference(output.got, replayed_.at(i), Tolerance{})});
  }

  void check_stored(std::size_t i) {
    const auto& output = run_.outputs[i];
    const bool own_is_right = rows_.back().ok();
    OutputCheck row{output.name, "stored output", difference(output.got, output.stored, tolerance_)};
    row.agreement = stored_.judge(i, output.got, output.stored, own_is_right);
    row.difference.within = row.agreement->ok();
    rows_.push_back(std::move(row));
  }

  const Run& run_;
  const std::vector<Tensor>& wanted_;
  bool bf16_, quantised_;
  Tolerance tolerance_;
  bool undecided_;
  std::vector<bool> chosen_;
  StoredOutputs stored_;
  std::vector<Tensor> replayed_;
  std::vector<OutputCheck> rows_;
};

}  // namespace

std::size_t Findings::faults() const {
  const auto count = [](const auto& rows) {
    return static_cast<std::size_t>(
        std::count_if(rows.begin(), rows.end(), [](const auto& row) { return !row.ok(); }));
  };
  return count(values) + count(layers) + count(outputs);
}

Findings check_run(const Run& run, const std::function<void(double)>& progress) {
  const RepeatedDraws repeated;
  Findings found;
  if (!run.before_bf16) {
    const auto wanted = check_parts(run, progress, found);
    found.outputs = Outputs(run, wanted, wanted, any_undecided(found)).check();
    return found;
  }
  std::vector<Tensor> lowered;
  const auto exact = check_bf16_parts(run, progress, found, lowered);
  found.outputs = Outputs(run, lowered, exact, any_undecided(found)).check();
  for (std::size_t i = 0; i < run.outputs.size(); ++i)
    found.drifts.push_back({run.outputs[i].name, "f32", difference(run.outputs[i].got, exact.at(i))});
  return found;
}

}  // namespace lamina::checking
