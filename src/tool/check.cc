/// lamina check: the plan against the reference interpreter.
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/npz.h"
#include "exec/single_step.h"
#include "interpreter/interpreter.h"
#include "ops/eval.h"
#include "rules/optimize.h"
#include "tool/rounding.h"
#include "tool/session.h"
#include "tool/verb_list.h"

namespace lamina::tool {
namespace {

struct CheckOptions {
  Common common;
  InputOptions inputs;
  std::string expect;
  bool per_layer = false, bisect = false;
};

struct LayerCheck {
  std::string name, op, kernel;
  Difference difference;
};

/// What one rounding may change is no difference.
Difference judged(const Graph& g, NodeId id, const std::vector<Tensor>& in, const Tensor& got,
                  const Tensor& wanted) {
  auto d = difference(got, wanted);
  if (d.within || !d.comparable) return d;
  const auto slack = undecided(g, id, in);
  if (!slack) return d;
  const auto a = to_doubles(got.to_aligned()), b = to_doubles(wanted.to_aligned());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto off = std::fabs(a[i] - b[i]);
    if (off <= d.limit) continue;
    const bool decided = !(off <= d.limit + (*slack)[i]);  // NaN is
    (decided ? wrong : d.undecided) += 1;
  }
  d.within = wrong == 0;
  if (wrong > 0) d.undecided = 0;
  return d;
}

/// Every step of a plan on the interpreter's own inputs. Appends values by name for the plans that follow.
void check_plan(const Plan& plan, const std::vector<Tensor>& inputs, std::map<std::string, Tensor>& values,
                std::vector<LayerCheck>& rows) {
  std::map<NodeId, const PlanStep*> steps;
  for (const auto& s : plan.steps)
    if (s.kind == PlanStep::Kind::kernel) steps[s.node] = &s;
  InterpreterOptions options;
  options.observe = [&](const Graph& g, NodeId id, const std::vector<Tensor>& in,
                        const std::vector<Tensor>& out) {
    for (std::size_t i = 0; i < out.size(); ++i) values[g.value(g.node(id).outputs[i]).name] = out[i];
    const auto it = steps.find(id);
    if (it == steps.end() || g.node(id).op.has(Trait::impure)) return;
    const auto got = run_single_step(plan, *it->second, in);
    for (std::size_t i = 0; i < got.size(); ++i)
      rows.push_back({g.label(id) + (got.size() > 1 ? fmt::format(" [{}]", i) : ""), g.node(id).op.name(),
                      it->second->label, judged(g, id, in, got[i], out[i])});
  };
  interpret(plan.graph, inputs, options);
}

std::vector<LayerCheck> check_layers(Session& s) {
  std::vector<LayerCheck> rows;
  std::map<std::string, Tensor> values;
  std::vector<Tensor> inputs = s.inputs;
  for (const auto& plan : Inside::of(s.request).plans()) {
    if (!rows.empty() || !values.empty()) {
      inputs.clear();
      for (const auto v : plan->graph.inputs()) inputs.push_back(values[plan->graph.value(v).name]);
    }
    for (std::size_t i = 0; i < plan->graph.inputs().size(); ++i)
      values[plan->graph.value(plan->graph.inputs()[i]).name] = inputs[i];
    check_plan(*plan, inputs, values, rows);
  }
  return rows;
}

bool is_half(const std::vector<Port>& ports) {
  return std::any_of(ports.begin(), ports.end(),
                     [](const Port& p) { return p.type == ElementType::f16 || p.type == ElementType::bf16; });
}

/// First rewrite after which the interpreter gives another result.
int bisect(const CheckOptions& o, Session& s, const std::vector<Tensor>& wanted) {
  const auto total = static_cast<std::int64_t>(s.impl().ledger().rewrites());
  const auto right_after = [&](std::int64_t count, Ledger& ledger) {
    OptimizeOptions options;
    options.disable = o.common.disable;
    options.exempt = o.common.exempt;
    options.stop_after = count;
    Graph g = s.impl().original();
    optimize(g, options, ledger);
    const auto got = interpret(g, s.inputs);
    for (std::size_t i = 0; i < got.size(); ++i)
      if (!difference(got[i], wanted[i], is_half(s.model.outputs())).within) return false;
    return true;
  };
  Ledger ledger;
  if (right_after(total, ledger)) {
    o.common.say("bisect: none of the {} rewrites changes the result", total);
    return 0;
  }
  std::int64_t good = 0, bad = total;
  while (bad - good > 1) {
    Ledger l;
    const auto middle = good + (bad - good) / 2;
    (right_after(middle, l) ? good : bad) = middle;
  }
  Ledger last;
  right_after(bad, last);
  o.common.say("bisect: rewrite {} of {} changes the result: {}", bad, total,
               to_string(last.firings().back()));
  return 1;
}

nlohmann::json to_json(const Difference& d) {
  return {{"within", d.within},
          {"max", d.max},
          {"mean", d.mean},
          {"limit", d.limit},
          {"mismatches", d.mismatches},
          {"undecided", d.undecided}};
}

int run(const CheckOptions& o) {
  auto options = o.common.options();
  options.keep_weights = true;  // the interpreter reads them
  Session s(o.common, o.inputs, options);
  for (const auto& note : s.notes)
    if (!o.common.quiet) fmt::print(stderr, "lamina: {}\n", note);
  std::vector<LayerCheck> rows;
  std::vector<Tensor> wanted;
  {
    Progress progress("checking " + o.common.model, o.common.quiet);
    s.request.run();
    rows = check_layers(s);
    wanted = interpret(s.impl().original(), s.inputs);
  }
  if (o.bisect) return bisect(o, s, wanted);
  nlohmann::json j{
      {"model", o.common.model}, {"layers", nlohmann::json::array()}, {"outputs", nlohmann::json::array()}};
  std::size_t bad = 0;
  for (const auto& r : rows) {
    bad += !r.difference.within;
    if (o.per_layer || !r.difference.within)
      o.common.say("{}  {:<40} {:<24} {:<32} {}", r.difference.within ? "ok  " : "FAIL", r.name, r.op,
                   r.kernel, to_string(r.difference));
    auto row = to_json(r.difference);
    row["name"] = r.name, row["op"] = r.op, row["kernel"] = r.kernel;
    j["layers"].push_back(std::move(row));
  }
  // Whole networks amplify what one rounding changes.
  const bool quantised = quantises(s.impl().original()),
             half = is_half(s.model.outputs()) || s.impl().widened();
  const auto expected = o.expect.empty() ? NpzFile{} : read_npz(o.expect);
  const auto& ports = s.model.outputs();
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const auto got = s.request.output(i);
    const auto judge = [&](const char* against, const Tensor& reference) {
      const auto d = difference(got, reference, half);
      const bool counts = !quantised || !d.comparable;
      bad += counts && !d.within;
      o.common.say("{}  output {} against the {}: {}{}",
                   d.within ? "ok  "
                   : counts ? "FAIL"
                            : "note",
                   ports[i].name, against, to_string(d),
                   counts || d.within
                       ? ""
                       : " (not judged: quantise steps amplify one rounding; the layers above are)");
      auto row = to_json(d);
      row["name"] = ports[i].name, row["against"] = against;
      j["outputs"].push_back(std::move(row));
    };
    judge("interpreter", wanted[i]);
    if (o.expect.empty()) continue;
    const auto* stored = find_array(expected, ports[i].name, "out" + std::to_string(i));
    if (!stored)
      fail(ErrorCode::bad_input, "{}: holds neither \"{}\" nor \"out{}\"", o.expect, ports[i].name, i);
    judge("stored output", *stored);
  }
  o.common.say("{}: {} layers checked, {} wrong", bad == 0 ? "clean" : "NOT clean", rows.size(), bad);
  j["clean"] = bad == 0;
  write_json(o.common, j);
  return bad == 0 ? 0 : 1;
}

}  // namespace

Verb setup_check(OptionSet& options) {
  auto o = std::make_shared<CheckOptions>();
  add_model(options, o->common);
  add_input_options(options, o->inputs);
  options.text("--expect", o->expect, "FILE.npz", "Stored outputs, by name or as out0, out1, ...");
  options.flag("--per-layer", o->per_layer, "Print every layer");
  options.flag("--bisect", o->bisect, "Name the first rewrite that changes the result");
  add_compile_options(options, o->common);
  add_json(options, o->common);
  return [o] { return run(*o); };
}

}  // namespace lamina::tool
