/// lamina check: rewriting, kernels and whole outputs against the reference interpreter.
#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/npz.h"
#include "check/bisect.h"
#include "check/judge.h"
#include "check/replay.h"
#include "check/rounding.h"
#include "exec/single_step.h"
#include "tool/session.h"
#include "tool/verb_list.h"

namespace lamina::tool {
using namespace check;  // all that it judges by
namespace {

struct CheckOptions {
  Common common;
  InputOptions inputs;
  std::string expect;
  bool per_layer = false, bisect = false;
  int steps = 1;
};

constexpr double kAnything = std::numeric_limits<double>::infinity();

struct LayerCheck {
  std::string name, op, kernel;
  Difference difference;
};

/// All that is found; stages with a wrong value are kept for --bisect.
struct Findings {
  std::vector<ValueCheck> values;
  std::vector<LayerCheck> layers;
  std::vector<Tensor> wanted;  ///< results of the model by the interpreter
  std::vector<Stage> wrong;
  std::size_t bad = 0;
};

/// What one rounding may change is no difference.
Difference judged(const Graph& g, NodeId id, const std::vector<Tensor>& in, const Tensor& got,
                  const Tensor& wanted) {
  auto d = difference(got, wanted);
  if (!d.within && d.comparable)
    if (const auto slack = undecided(g, id, in)) grant(d, got, wanted, *slack);
  return d;
}

/// Every step of the plan on the interpreter's own inputs.
auto steps_of(const Plan& plan, std::vector<LayerCheck>& rows) {
  std::map<NodeId, const PlanStep*> steps;
  for (const auto& s : plan.steps)
    if (s.kind == PlanStep::Kind::kernel) steps[s.node] = &s;
  return [&plan, &rows, steps](NodeId node, const Graph& g, NodeId id, const std::vector<Tensor>& in,
                               const std::vector<Tensor>& out) {
    const auto it = steps.find(node);
    if (it == steps.end() || g.node(id).op.has(Trait::impure)) return;
    const auto got = run_single_step(plan, *it->second, in);
    for (std::size_t i = 0; i < got.size(); ++i)
      rows.push_back({g.label(id) + (got.size() > 1 ? fmt::format(" [{}]", i) : ""), g.node(id).op.name(),
                      it->second->label, judged(g, id, in, got[i], out[i])});
  };
}

/// Plan by plan: what rewriting made of the values before, and the kernels.
Findings check_stages(const Session& s, Progress& progress) {
  Findings found;
  const auto plans = Inside::of(s.request).plans();
  Stage stage{&s.impl().original(), s.inputs, nullptr, nullptr};
  for (std::size_t p = 0; p < plans.size(); ++p) {
    const Plan& plan = *plans[p];
    stage.plan = plans[p];
    std::map<std::string, Tensor> for_rest;
    if (plan.rest)
      for (const auto v : plan.rest->inputs()) for_rest[plan.rest->value(v).name];
    JudgeOptions options;
    options.observe = steps_of(plan, found.layers);
    options.keep = &for_rest;
    options.progress = [&](std::size_t done, std::size_t all) {
      progress.at((static_cast<double>(p) + static_cast<double>(done) / static_cast<double>(all)) /
                  static_cast<double>(plans.size()));
    };
    auto judgement = judge_rewriting(*stage.original, stage.inputs, plan.graph, options);
    if (!judgement.clean()) found.wrong.push_back(stage);
    if (p == 0) found.wanted = std::move(judgement.results);
    std::move(judgement.values.begin(), judgement.values.end(), std::back_inserter(found.values));
    if (!plan.rest) break;
    stage = {&*plan.rest, {}, nullptr, plans[p]};
    for (const auto v : plan.rest->inputs()) stage.inputs.push_back(for_rest.at(plan.rest->value(v).name));
  }
  return found;
}

bool is_half(const std::vector<Port>& ports) {
  return std::any_of(ports.begin(), ports.end(),
                     [](const Port& p) { return p.type == ElementType::f16 || p.type == ElementType::bf16; });
}

nlohmann::json bisect(const CheckOptions& o, const Session& s, const Findings& found) {
  const auto total = s.impl().ledger().rewrites();
  if (found.wrong.empty()) {
    o.common.say("bisect: none of the {} rewrites changes the result", total);
    return nullptr;
  }
  if (const auto g = guilty_rewrite(s.impl(), found.wrong.front())) {
    o.common.say("bisect: rewrite {} of {} changes \"{}\": {}", g->number, g->total, g->value, g->rewrite);
    return {{"number", g->number}, {"total", g->total}, {"value", g->value}, {"rewrite", g->rewrite}};
  }
  o.common.say("bisect: none of the {} rewrites changes a value, but planning does", total);
  return "planning";
}

nlohmann::json to_json(const Difference& d) {
  return {{"within", d.within},
          {"max", d.max},
          {"mean", d.mean},
          {"limit", d.limit},
          {"mismatches", d.mismatches},
          {"undecided", d.undecided}};
}

const char* word(bool ok) { return ok ? "ok  " : "FAIL"; }

nlohmann::json report_values(const CheckOptions& o, Findings& found) {
  auto list = nlohmann::json::array();
  for (const auto& v : found.values) {
    found.bad += !v.ok();
    const auto text = v.problem.empty() ? to_string(v.difference) : v.problem;
    if (o.per_layer || !v.ok())
      o.common.say("{}  {:<40} {:<57} {}", word(v.ok()), v.name, "rewritten: " + v.made_by, text);
    auto row = to_json(v.difference);
    row["within"] = v.ok();
    row["name"] = v.name, row["made_by"] = v.made_by, row["problem"] = v.problem;
    list.push_back(std::move(row));
  }
  return list;
}

nlohmann::json report_layers(const CheckOptions& o, Findings& found) {
  auto list = nlohmann::json::array();
  for (const auto& r : found.layers) {
    found.bad += !r.difference.within;
    if (o.per_layer || !r.difference.within)
      o.common.say("{}  {:<40} {:<24} {:<32} {}", word(r.difference.within), r.name, r.op, r.kernel,
                   to_string(r.difference));
    auto row = to_json(r.difference);
    row["name"] = r.name, row["op"] = r.op, row["kernel"] = r.kernel;
    list.push_back(std::move(row));
  }
  return list;
}

/// Whole outputs. Where a model rounds to levels, one rounding may change all that follows: then the layers,
/// one by one on what the layers before gave, must make the very same. Stored outputs come from elsewhere and
/// are judged in the mean, which may be four times as far off as from the interpreter's.
class Outputs {
 public:
  Outputs(const CheckOptions& o, const Session& s, Findings& found)
      : o_(o), s_(s), found_(found), quantised_(quantises(s.impl().original())) {
    if (is_half(s.model.outputs()) || s.impl().widened()) tolerance_ = kOfHalf;
  }

  nlohmann::json report() {
    const auto expected = o_.expect.empty() ? NpzFile{} : read_npz(o_.expect);
    const auto& ports = s_.model.outputs();
    for (std::size_t i = 0; i < ports.size(); ++i) {
      const auto got = s_.request.output(i);
      const auto d = difference(got, found_.wanted[i], tolerance_);
      if (d.within || !d.comparable || !quantised_)
        say(ports[i].name, "interpreter", d);
      else
        say(ports[i].name, "layers one by one", difference(got, replayed(i), Tolerance{}));
      if (o_.expect.empty()) continue;
      const auto* stored = find_array(expected, ports[i].name, "out" + std::to_string(i));
      if (!stored)
        fail(ErrorCode::bad_input, "{}: holds neither \"{}\" nor \"out{}\"", o_.expect, ports[i].name, i);
      auto from_stored = difference(got, *stored, tolerance_);
      if (quantised_ && from_stored.comparable) {
        const bool mean = is_float(got.element_type()) && from_stored.mismatches == 0 &&
                          from_stored.mean <= from_stored.limit + 4 * d.mean;
        grant(from_stored, got, *stored, std::vector<double>(got.size(), mean ? kAnything : 4 * d.max));
      }
      say(ports[i].name, "stored output", from_stored);
    }
    return std::move(list_);
  }

 private:
  void say(const std::string& name, const char* against, const Difference& d) {
    found_.bad += !d.within;
    o_.common.say("{}  output {} against the {}: {}", word(d.within), name, against, to_string(d));
    auto row = to_json(d);
    row["name"] = name, row["against"] = against;
    list_.push_back(std::move(row));
  }
  const Tensor& replayed(std::size_t i) {
    if (replayed_.empty()) replayed_ = replay(Inside::of(s_.request).plans(), s_.inputs);
    return replayed_.at(i);
  }

  const CheckOptions& o_;
  const Session& s_;
  Findings& found_;
  bool quantised_;
  Tolerance tolerance_ = kOfKernels;
  std::vector<Tensor> replayed_;
  nlohmann::json list_ = nlohmann::json::array();
};

int run(const CheckOptions& o) {
  auto options = o.common.options();
  options.keep_weights = true;  // the interpreter reads them
  Session s(o.common, o.inputs, options);
  for (const auto& note : s.notes)
    if (!o.common.quiet) fmt::print(stderr, "lamina: {}\n", note);
  Findings found;
  {
    Progress progress("checking " + o.common.model, o.common.quiet);
    s.advance(o.steps - 1);
    s.request.run();
    found = check_stages(s, progress);
  }
  nlohmann::json j{{"model", o.common.model}};
  j["rewriting"] = report_values(o, found);
  j["layers"] = report_layers(o, found);
  j["outputs"] = Outputs(o, s, found).report();
  if (o.bisect) j["bisect"] = bisect(o, s, found);
  o.common.say("{}: {} values of the model and {} layers checked, {} wrong",
               found.bad == 0 ? "clean" : "NOT clean", found.values.size(), found.layers.size(), found.bad);
  j["clean"] = found.bad == 0;
  write_json(o.common, j);
  return found.bad == 0 ? 0 : 1;
}

}  // namespace

Verb setup_check(OptionSet& options) {
  auto o = std::make_shared<CheckOptions>();
  add_model(options, o->common);
  add_input_options(options, o->inputs);
  options.text("--expect", o->expect, "FILE.npz", "Stored outputs, by name or as out0, out1, ...");
  options.number(
      "--steps", o->steps, 1, 1000000, "N",
      "Check the N-th run of a model with variables, from what the interpreter has kept before it");
  options.flag("--per-layer", o->per_layer, "Print every value of the model and every layer");
  options.flag("--bisect", o->bisect, "Name the first rewrite that changes the result, too");
  add_compile_options(options, o->common);
  add_json(options, o->common);
  return [o] { return run(*o); };
}

}  // namespace lamina::tool
