/// lamina explain: what became of each layer of the file, and why.
#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/arena.h"
#include "base/atomic_file.h"
#include "base/error.h"
#include "draw/rewrite_report.h"
#include "draw/text.h"
#include "explain/findings.h"
#include "explain/machine_file.h"
#include "explain/names.h"
#include "explain/rewriting_page.h"
#include "explain/summary.h"
#include "explain/verdict.h"
#include "explain/verdict_words.h"
#include "explain/why.h"
#include "kernels/onednn_isa.h"
#include "tool/explain_layer.h"
#include "tool/session.h"
#include "tool/verb_list.h"

namespace lamina::tool {
namespace {

struct ExplainOptions {
  Common common;
  InputOptions inputs;
  std::string node;
  std::vector<std::string> why;
  std::string machine, report;  ///< files
  bool no_run = false, summary = false, plan = false;
  double seconds = 0.3;
};

Findings find(const ExplainOptions& o, Session& s) {
  Findings f;
  Progress progress("planning " + o.common.model, o.common);
  if (o.no_run) {
    const auto& program = s.impl().program();
    on_threads(s.impl().threads(), [&] { f.plans.push_back(program->plan(s.inputs)->plan); });
  } else {
    f.profile = profile_runs(s.request, o.seconds);
    f.plans = f.profile.plans();
  }
  f.outcomes = layer_outcomes(s.impl(), f.plans);
  return f;
}

void print_row(const Common& c, const Findings& all, const LayerOutcome& f) {
  const auto head = padded(printable(f.name), 36) + " " + padded(f.type, 20);
  if (f.kind != LayerOutcome::Kind::runs) {
    c.say("{} {:>17}{}", head, "", in_short(all, f));
    return;
  }
  const auto row = row_of(*f.nodes[0].plan, *f.nodes[0].step);
  const double time = all.time(f);
  const auto steps =
      std::count_if(f.nodes.begin(), f.nodes.end(), [](const auto& n) { return n.representative && n.step; });
  c.say("{} {} {} {} {}{}", head,
        all.timed() ? fmt::format("{:>9.1f} {:>5.1f}%", time, 100 * all.share(time))
                    : fmt::format("{:>9.1f} {:>6}", all.estimate(f), ""),
        padded(row.kernel, 34), padded(row.layout, 24), row.precision,
        steps > 1 ? fmt::format(", {} steps", steps) : "");
}

/// "5 run", "1 runs", "3 constants", "2 not taken": so many layers have this outcome.
std::string counted(LayerOutcome::Kind kind, std::size_t n) {
  using Kind = LayerOutcome::Kind;
  switch (kind) {
    case Kind::runs:
      return fmt::format("{} {}", n, n == 1 ? "runs" : "run");
    case Kind::body:
      return fmt::format("{} in bodies", n);
    case Kind::untaken:
      return fmt::format("{} not taken", n);
    case Kind::waiting:
      return fmt::format("{} not planned", n);
    case Kind::variable:
    case Kind::constant:
      return count_of(n, std::string(name_of(kind)));
    case Kind::fused:
    case Kind::free:
    case Kind::removed:
      break;
  }
  return fmt::format("{} {}", n, name_of(kind));
}

/// Where the layers went and how the time divides: rows of layers, other steps, and the rest make up the
/// whole.
void print_totals(const Common& c, const Findings& all) {
  std::map<LayerOutcome::Kind, std::size_t> count;
  for (const auto& f : all.outcomes) ++count[f.kind];
  std::string text;
  for (const auto& [kind, n] : count) text += (text.empty() ? "" : ", ") + counted(kind, n);
  c.say("{}: {}", count_of(all.outcomes.size(), "layer"), text);
  double kernels = 0, moves = 0;
  std::size_t steps = 0, moving = 0;
  for (const auto& plan : all.plans)
    for (const auto& s : plan->steps) {
      const bool moves_only = !s.runs_a_node();
      (moves_only ? moves : kernels) += all.profile.of(s);
      ++(moves_only ? moving : steps);
    }
  if (!all.timed())
    return c.say("{} steps, {} reorders and copies; {:.1f} us estimated on one thread", steps, moving,
                 all.estimate());
  c.say("{:.1f} us a run: {} steps {:.1f}, {} reorders and copies {:.1f}, between the steps {:.1f}",
        all.profile.whole(), steps, kernels, moving, moves, all.profile.whole() - kernels - moves);
}

/// Wrong names of --node and --why.
void check_names(const ExplainOptions& o, const Model& model) {
  const auto& loaded = Inside::of(model);
  if (!o.why.empty()) rule_named(o.why[0], loaded.rules());
  if (!o.node.empty()) require_possible(loaded.described().graph, "--node", o.node);
  if (!o.why.empty()) require_possible(loaded.described().graph, "--why", o.why[1]);
}

int why(const ExplainOptions& o, const Session& s, const Findings& all) {
  const auto& rule = rule_named(o.why[0], s.impl().model().rules());
  nlohmann::json j{{"model", o.common.model},
                   {"rule", rule.name},
                   {"node", o.why[1]},
                   {"history", nlohmann::json::array()}};
  const auto layers = layers_named(all, "--why", o.why[1]);
  std::set<std::pair<std::string, std::size_t>> said;  // of several layers of that name
  for (const auto* f : layers)
    for (const auto& e : entries_of(rule, s.impl(), all.plans, *f)) {
      if (!said.emplace(to_string(e), e.order).second) continue;
      o.common.say("{}", printable(to_string(e)));
      j["history"].push_back(to_json(e));
    }
  j["plan"] = nlohmann::json::array();
  for (const auto* f : layers)
    for (const auto& text : plan_sentences(all.plans, all.outcomes, *f)) {
      o.common.say("plan: {}", printable(text));
      j["plan"].push_back(text);
    }
  if (j["history"].empty()) {
    const auto text = why_silent(rule, s.impl(), all.plans, *layers[0]);
    o.common.say("{} at '{}': {}", rule.name, printable(o.why[1]), printable(text));
    j["text"] = text;
  }
  write_json(o.common, j);
  return 0;
}

void print_summary(const Common& c, const Session& s, const Findings& all) {
  print_totals(c, all);
  const auto fused = fused_layers(all.outcomes);
  c.say("{} {:>7} {:>7} {:>14}", padded("rule", 32), "fired", "refused", "layers fused");
  for (const auto& [rule, count] : rule_counts(s.impl(), all.plans)) {
    const auto it = fused.find(rule);
    if (count.hits || count.refusals)
      c.say("{} {:>7} {:>7} {:>14}", padded(rule, 32), count.hits, count.refusals,
            it == fused.end() ? "" : std::to_string(it->second));
  }
  const auto alone = lone_steps(all.plans, all.outcomes);
  c.say("{} element-wise step{} on {} own", alone.size(), alone.size() == 1 ? " runs" : "s run",
        alone.size() == 1 ? "its" : "their");
  for (const auto& lone : alone) {
    c.say("  {} ({}){}{}", printable(lone.name), clipped(lone.operators, 300),
          all.timed() ? fmt::format(", {:.1f} us", all.profile.of(*lone.step)) : "",
          lone.behind.empty() ? "" : ", behind " + printable(lone.behind));
    for (const auto& reason : lone.reasons) c.say("    {}", printable(reason));
  }
}

void print_machine(const Common& c, const Machine& m, int threads) {
  c.say("planned for {}: {}, {} thread{}; caches {} KiB, {} KiB, {:.6g} MiB",
        m.name.empty() ? "a machine without a name" : m.name, name_of(m.isa()), threads,
        threads == 1 ? "" : "s", m.l1 >> 10, m.l2 >> 10, static_cast<double>(m.l3) / (1 << 20));
  if (m.library > onednn_isa())
    c.say("oneDNN cannot be asked for {} here: its kernels for {} are shown instead", name_of(m.library),
          name_of(onednn_isa()));
}

/// What numbers of streams promise, where they were chosen by it.
void print_forecast(const Common& c, const Placement& p) {
  if (p.forecast.empty()) return;
  c.say("{:>7} {:>7} {:>12}", "streams", "threads", "forecast/s");
  for (const auto& f : p.forecast) {
    const bool used = f.streams == static_cast<int>(p.streams.size());
    c.say("{:>7} {:>7} {:>12}{}", f.streams, f.threads_each,
          f.per_second > 0 ? fmt::format("{:.1f}", f.per_second) : "not known", used ? "  used" : "");
  }
}

nlohmann::json json_of(const std::vector<StreamForecast>& forecast) {
  auto out = nlohmann::json::array();
  for (const auto& f : forecast)
    out.push_back({{"streams", f.streams},
                   {"threads_per_stream", f.threads_each},
                   {"per_second", f.per_second > 0 ? nlohmann::json(f.per_second) : nlohmann::json()}});
  return out;
}

/// One after the other: that of what waited for shapes behind that which made them.
void print_plans(const Common& c, const Findings& all) {
  for (const auto& plan : all.plans) {
    std::istringstream lines(to_text(*plan));
    for (std::string line; std::getline(lines, line);) c.say("{}", line);
  }
}

/// Rules of libraries, those that did nothing as well: "matched 3, refused 1: ...".
void print_library_rules(const Common& c, const Session& s, const Findings& all) {
  const auto stopped = stopped_rules(s.impl(), all.plans);
  for (const auto& library : s.impl().model().described().extensions->all())
    for (const auto& rule : library->rules) {
      if (const auto it = stopped.find(rule->name); it != stopped.end()) {
        c.say("{:<36} left out: {}", rule->name, printable(it->second));
        continue;
      }
      auto entries = s.impl().ledger().of_rule(rule->name);
      for (const auto& plan : all.plans)
        for (auto& e : plan->ledger.of_rule(rule->name)) entries.push_back(std::move(e));
      std::size_t refused = 0, fired = 0;
      std::string why;
      for (const auto& e : entries) {
        if (e.kind == LedgerEntry::Kind::fired) ++fired;
        if (e.kind == LedgerEntry::Kind::refused && refused++ == 0)
          why = fmt::format(": at '{}': {}", e.node, e.text);
      }
      c.say("{:<36} matched {}, refused {}{}", rule->name, fired + refused, refused,
            clipped(printable(why), 300));
    }
}

void print_table(const Common& c, const Session& s, const Findings& all) {
  c.say("{} {} {} {} {} {}", padded("layer", 36), padded("type", 20),
        all.timed() ? fmt::format("{:>9} {:>6}", "us", "share") : fmt::format("{:>9} {:>6}", "estim. us", ""),
        padded("kernel, or why none runs", 34), padded("layout", 24), "precision");
  for (const auto& f : all.outcomes)
    if (f.kind != LayerOutcome::Kind::constant) print_row(c, all, f);
  print_totals(c, all);
  for (const auto& [rule, count] : rule_counts(s.impl(), all.plans))
    if (count.hits) c.say("{:<36} {} time{}", rule, count.hits, count.hits == 1 ? "" : "s");
  print_library_rules(c, s, all);
  print_forecast(c, s.impl().settings().placement);
}

/// The options that a line to try has to repeat: those that decide what is read, planned and run.
std::vector<std::string> asked_again(const ExplainOptions& o) {
  std::vector<std::string> out;
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) out.insert(out.end(), {option, value});
  };
  const auto add_all = [&](const char* option, const std::vector<std::string>& values) {
    for (const auto& value : values) add(option, value);
  };
  const auto& c = o.common;
  add("--weights", c.weights);
  add_all("--extensions", c.extensions);
  add_all("--settable", c.settable);
  add_all("--shape", c.shape);
  if (o.machine.empty()) {
    add_all("--input", o.inputs.input);
    add("--inputs", o.inputs.inputs);
  }
  add("--machine", o.machine);
  if (c.max_isa != "native") add("--max-isa", c.max_isa);
  if (c.precision != "model") add("--precision", c.precision);
  if (c.threads > 0) add("--threads", std::to_string(c.threads));
  return out;
}

void print_verdict(const Common& c, const ModelVerdict& v) {
  c.say("");
  c.say("verdict");
  for (const auto* sentence : {&v.time, &v.fusion, &v.integers, &v.bf16, &v.next}) c.say("  {}", *sentence);
  c.say("    {}", v.command);
}

/// Without what --max-isa leaves out. The level of that machine for oneDNN, too, where that can be had: it
/// answers for itself then.
Machine given_machine(const std::string& path, Options& options) {
  auto machine = read_machine_file(path);
  for (const auto isa : {Isa::sse41, Isa::avx2, Isa::avx512})
    if (options.max_isa == name_of(isa)) machine = limited(std::move(machine), isa);
  if (machine.isa() < native_isa()) options.max_isa = name_of(machine.isa());
  return machine;
}

void report_rewriting(const ExplainOptions& o, const Session& s) {
  Progress progress("reporting on " + o.common.model, o.common);
  const auto name = std::filesystem::path(o.common.model).filename().string();
  write_file(o.report, rewriting_page(name, s.impl(), s.model_inputs(), progress.callback()));
}

int run(ExplainOptions o) {
  require_page_name(o.report);
  auto options = o.common.options();
  std::optional<Machine> machine;
  if (!o.machine.empty()) {
    if (o.common.tune) throw UsageError("--machine excludes --tune: nothing runs");
    machine = given_machine(o.machine, options);
    o.no_run = true;
  }
  options.profile = !o.no_run;
  options.keep_weights = true;  // what was chosen and why is not in the files of compiled models
  auto inputs = o.inputs;
  inputs.only_shapes = o.no_run && !o.common.tune;
  Session s(o.common, inputs, options, machine ? &*machine : nullptr,
            [&](const Model& model) { check_names(o, model); });
  if (!o.no_run) o.common.note(s.notes);
  const auto all = find(o, s);
  if (!o.report.empty()) report_rewriting(o, s);
  if (machine) print_machine(o.common, *machine, s.impl().threads());
  if (!o.why.empty()) return why(o, s, all);
  for (const auto& note : s.impl().precision_notes()) o.common.say("precision: {}", note);
  std::vector<const LayerOutcome*> shown;
  const bool whole = o.node.empty() && !o.plan;
  const auto verdict =
      whole ? verdict_of(all, s.impl(), o.common.model, asked_again(o), !machine) : ModelVerdict();
  if (o.node.empty()) {
    if (o.plan)
      print_plans(o.common, all);
    else if (o.summary)
      print_summary(o.common, s, all);
    else
      print_table(o.common, s, all);
    if (whole) print_verdict(o.common, verdict);
    for (const auto& f : all.outcomes) shown.push_back(&f);
  } else {
    shown = layers_named(all, "--node", o.node);
    for (const auto* f : shown) print_detail(o.common, s, all, *f);
  }
  if (o.common.json.empty()) return 0;
  auto j = to_json(o.common.model, s.impl(), all);
  if (const auto& forecast = s.impl().settings().placement.forecast; !forecast.empty())
    j["streams"] = json_of(forecast);
  if (o.plan)
    for (const auto& plan : all.plans) j["plans"].push_back(to_text(*plan));
  j["layers"] = to_json(all, shown);
  if (whole) j["verdict"] = to_json(verdict);
  write_json(o.common, j);
  return 0;
}

}  // namespace

Verb setup_explain(OptionSet& options) {
  auto o = std::make_shared<ExplainOptions>();
  add_model(options, o->common);
  add_input_options(options, o->inputs);
  const auto node = options.text("--node", o->node, "NAME", "All about one layer");
  const auto why = options.words("--why", o->why, 2, "RULE NODE", "What one rule did or refused at one layer")
                       .excludes(node);
  const auto summary =
      options
          .flag("--summary", o->summary, "How often each rule fused, and which element-wise steps run alone")
          .excludes(node)
          .excludes(why);
  options.flag("--plan", o->plan, "The plan itself: each tensor's layout and place, each step's kernel")
      .excludes(node)
      .excludes(why)
      .excludes(summary);
  const auto no_run = options.flag("--no-run", o->no_run, "Only plan: no times");
  const auto machine =
      options
          .text("--machine", o->machine, "FILE", "Plan for another machine, described in FILE; nothing runs")
          .excludes(no_run);
  options.number("--seconds", o->seconds, 0.0, 86400.0, "S", "How long to measure")
      .excludes(no_run)
      .excludes(machine);
  options.text("--report", o->report, "FILE.html",
               "Write a page about the rewriting, with a drawing of each rewrite before and after");
  add_compile_options(options, o->common);
  add_json(options, o->common);
  return [o] { return run(*o); };
}

}  // namespace lamina::tool
