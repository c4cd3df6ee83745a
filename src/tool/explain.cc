/// lamina explain: what became of each layer of the file, and why.
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/atomic_file.h"
#include "lamina/explain.h"
#include "tool/explain_layer.h"
#include "tool/session.h"
#include "tool/verb_list.h"

namespace lamina::tool {
namespace {

struct ExplainCommand {
  Common common;
  InputOptions inputs;
  std::string node;
  std::vector<std::string> why;
  std::string machine, report;  ///< files
  bool no_run = false, summary = false, plan = false;
  double seconds = 0.3;
};

void print_row(const Common& c, const Explanation& all, const LayerExplanation& f) {
  const auto head = padded(printable(f.name), 36) + " " + padded(f.type, 20);
  if (f.fate != LayerFate::runs) return c.say("{} {:>17}{}", head, "", f.text);
  c.say("{} {} {} {} {}{}", head,
        all.timed() ? fmt::format("{:>9.1f} {:>5.1f}%", f.us, 100 * f.share)
                    : fmt::format("{:>9.1f} {:>6}", f.estimate_us, ""),
        padded(f.kernel, 34), padded(f.layout, 24), f.precision,
        f.steps > 1 ? fmt::format(", {} steps", f.steps) : "");
}

/// "1 layer", "3 layers"
std::string number_of(std::size_t n, std::string_view noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

/// "5 run", "1 runs", "3 constants", "2 not taken": so many layers have this fate.
std::string counted(LayerFate fate, std::size_t n) {
  switch (fate) {
    case LayerFate::runs:
      return fmt::format("{} {}", n, n == 1 ? "runs" : "run");
    case LayerFate::body:
      return fmt::format("{} in bodies", n);
    case LayerFate::untaken:
      return fmt::format("{} not taken", n);
    case LayerFate::waiting:
      return fmt::format("{} not planned", n);
    case LayerFate::variable:
    case LayerFate::constant:
      return number_of(n, name_of(fate));
    case LayerFate::fused:
    case LayerFate::free:
    case LayerFate::removed:
      break;
  }
  return fmt::format("{} {}", n, name_of(fate));
}

/// Where the layers went and how the time divides: rows of layers, other steps, and the rest make up the
/// whole.
void print_totals(const Common& c, const Explanation& all) {
  std::map<LayerFate, std::size_t> count;
  for (const auto& f : all.layers) ++count[f.fate];
  std::string text;
  for (const auto& [fate, n] : count) text += (text.empty() ? "" : ", ") + counted(fate, n);
  c.say("{}: {}", number_of(all.layers.size(), "layer"), text);
  const auto& t = all.totals;
  if (!all.timed())
    return c.say("{} steps, {} reorders and copies; {:.1f} us estimated on one thread", t.steps, t.moves,
                 t.estimate_us);
  c.say("{:.1f} us a run: {} steps {:.1f}, {} reorders and copies {:.1f}, between the steps {:.1f}", t.us,
        t.steps, t.steps_us, t.moves, t.moves_us, t.us - t.steps_us - t.moves_us);
}

/// The function's errors name the option that gave what was wrong.
template <class F>
auto as_option(const char* option, const F& function) {
  try {
    return function();
  } catch (const Error& e) {
    throw Error(e.code(), fmt::format("{}: {}", option, e.what()));
  }
}

/// Wrong names of --node and --why.
void check_names(const ExplainCommand& o, const Model& model) {
  if (!o.why.empty()) as_option("--why", [&] { require_rule(model, o.why[0]); });
  if (!o.node.empty()) as_option("--node", [&] { require_layer(model, o.node); });
  if (!o.why.empty()) as_option("--why", [&] { require_layer(model, o.why[1]); });
}

int print_answer(const ExplainCommand& o, const Explanation& all) {
  const auto answer = as_option("--why", [&] { return all.why(o.why[0], o.why[1]); });
  for (const auto& e : answer.history) o.common.say("{}", printable(to_string(e)));
  for (const auto& text : answer.plan) o.common.say("plan: {}", printable(text));
  if (answer.history.empty())
    o.common.say("{} at '{}': {}", answer.rule, printable(o.why[1]), printable(answer.text));
  write_json(o.common, nlohmann::json::parse(answer.json()));
  return 0;
}

void print_summary(const Common& c, const Explanation& all) {
  print_totals(c, all);
  c.say("{} {:>7} {:>7} {:>14}", padded("rule", 32), "fired", "refused", "layers fused");
  for (const auto& r : all.rules) {
    const auto it = all.fused_layers.find(r.rule);
    if (r.hits || r.refusals)
      c.say("{} {:>7} {:>7} {:>14}", padded(r.rule, 32), r.hits, r.refusals,
            it == all.fused_layers.end() ? "" : std::to_string(it->second));
  }
  const auto alone = all.alone.size();
  c.say("{} element-wise step{} on {} own", alone, alone == 1 ? " runs" : "s run",
        alone == 1 ? "its" : "their");
  for (const auto& step : all.alone) {
    c.say("  {} ({}){}{}", printable(step.node), clipped(step.operators, 300),
          all.timed() ? fmt::format(", {:.1f} us", step.us) : "",
          step.behind.empty() ? "" : ", behind " + printable(step.behind));
    for (const auto& reason : step.reasons) c.say("    {}", printable(reason));
  }
}

void print_machine(const Common& c, const PlannedMachine& m) {
  c.say("planned for {}: {}, {}; caches {} KiB, {} KiB, {:.6g} MiB",
        m.name.empty() ? "a machine without a name" : m.name, m.level,
        number_of(static_cast<std::size_t>(m.threads), "thread"), m.l1 >> 10, m.l2 >> 10,
        static_cast<double>(m.l3) / (1 << 20));
  if (m.library_level != m.shown_level)
    c.say("oneDNN cannot be asked for {} here: its kernels for {} are shown instead", m.library_level,
          m.shown_level);
}

/// What numbers of streams promise, where they were chosen by it.
void print_forecast(const Common& c, const std::vector<ThroughputForecast>& forecast) {
  if (forecast.empty()) return;
  c.say("{:>7} {:>7} {:>12}", "streams", "threads", "forecast/s");
  for (const auto& f : forecast)
    c.say("{:>7} {:>7} {:>12}{}", f.streams, f.threads_per_stream,
          f.per_second > 0 ? fmt::format("{:.1f}", f.per_second) : "not known", f.used ? "  used" : "");
}

/// One after the other: that of what waited for shapes behind that which made them.
void print_plans(const Common& c, const Explanation& all) {
  for (const auto& plan : all.plans()) {
    std::istringstream lines(plan);
    for (std::string line; std::getline(lines, line);) c.say("{}", line);
  }
}

/// Rules of libraries, those that did nothing as well: "matched 3, refused 1: ...".
void print_library_rules(const Common& c, const std::vector<ExtensionRule>& rules) {
  for (const auto& r : rules) {
    if (!r.left_out.empty()) {
      c.say("{:<36} left out: {}", r.rule, printable(r.left_out));
      continue;
    }
    const auto why = r.first_refusal.empty() ? "" : ": " + r.first_refusal;
    c.say("{:<36} matched {}, refused {}{}", r.rule, r.fired + r.refused, r.refused,
          clipped(printable(why), 300));
  }
}

void print_table(const Common& c, const Explanation& all) {
  c.say("{} {} {} {} {} {}", padded("layer", 36), padded("type", 20),
        all.timed() ? fmt::format("{:>9} {:>6}", "us", "share") : fmt::format("{:>9} {:>6}", "estim. us", ""),
        padded("kernel, or why none runs", 34), padded("layout", 24), "precision");
  for (const auto& f : all.layers)
    if (f.fate != LayerFate::constant) print_row(c, all, f);
  print_totals(c, all);
  for (const auto& r : all.rules)
    if (r.hits) c.say("{:<36} {} time{}", r.rule, r.hits, r.hits == 1 ? "" : "s");
  print_library_rules(c, all.extension_rules);
  print_forecast(c, all.forecast);
}

/// The options that a line to try has to repeat: those that decide what is read, planned and run.
std::vector<std::string> asked_again(const ExplainCommand& o) {
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

Explanation explained(const ExplainCommand& o) {
  const auto model = open_model(o.common);
  check_names(o, model);
  auto options = o.common.options();
  auto how = o.inputs;
  how.only_shapes = o.no_run && !o.common.tune;
  std::vector<std::string> notes;
  ExplainOptions explaining{.inputs = gather_inputs(model, how, o.common, notes),
                            .machine = o.machine,
                            .model = o.common.model,
                            .command_options = asked_again(o)};
  if (!o.no_run) explaining.seconds = o.seconds;
  if (o.common.tune) options = tuned_options(o.common, model, std::move(options), explaining.inputs);
  if (!o.no_run) o.common.note(notes);
  Progress progress("explaining " + o.common.model, o.common);
  explaining.progress = progress.callback();
  return explain(model, options, explaining);
}

void report_rewriting(const ExplainCommand& o, const Explanation& all) {
  Progress progress("reporting on " + o.common.model, o.common);
  write_file(o.report, all.rewriting_page(progress.callback()));
}

/// What --node, --plan, --summary or none of them asks for.
void print_asked(const ExplainCommand& o, const Explanation& all) {
  const auto& c = o.common;
  for (const auto& note : all.precision_notes) c.say("precision: {}", note);
  if (!o.node.empty()) {
    for (const auto* f : as_option("--node", [&] { return all.layers_named(o.node); }))
      print_detail(c, all, *f);
    return;
  }
  if (o.plan) return print_plans(c, all);
  if (o.summary)
    print_summary(c, all);
  else
    print_table(c, all);
  print_verdict(c, all.verdict());
}

int run(ExplainCommand o) {
  require_page_name(o.report);
  if (!o.machine.empty()) {
    if (o.common.tune) throw UsageError("--machine excludes --tune: nothing runs");
    o.no_run = true;
  }
  const auto all = explained(o);
  if (!o.report.empty()) report_rewriting(o, all);
  if (all.machine.described) print_machine(o.common, all.machine);
  if (!o.why.empty()) return print_answer(o, all);
  print_asked(o, all);
  if (o.common.json.empty()) return 0;
  ExplainDocument document{.plans = o.plan};
  if (!o.node.empty()) document.layer = o.node;
  write_json(o.common, nlohmann::json::parse(all.json(document)));
  return 0;
}

}  // namespace

Verb setup_explain(OptionSet& options) {
  auto o = std::make_shared<ExplainCommand>();
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
