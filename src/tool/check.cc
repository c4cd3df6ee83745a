/// lamina check: rewriting, kernels and whole outputs against the reference interpreter; a quantised model
/// against its f32 model.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/arena.h"
#include "base/element_types.h"
#include "base/error.h"
#include "base/npz.h"
#include "check/check.h"
#include "explain/layers.h"
#include "extension/conformance.h"
#include "ops/repeated_draws.h"
#include "quantise/noise_cells.h"
#include "tool/check_against.h"
#include "tool/session.h"
#include "tool/verb_list.h"

namespace lamina::tool {
namespace {

struct CheckOptions {
  Common common;
  InputOptions inputs;
  std::string expect;
  AgainstOptions against;
  bool per_layer = false, bisect = false;
  int steps = 1;
};

nlohmann::json bisect(const CheckOptions& o, const Session& s, const checking::Findings& found) {
  const auto total = s.impl().ledger().rewrites();
  if (found.wrong.empty()) {
    o.common.say("bisect: none of the {} rewrites changes the result", total);
    return nullptr;
  }
  if (const auto g = checking::guilty_rewrite(s.impl(), found.wrong.front())) {
    o.common.say("bisect: rewrite {} of {} changes \"{}\": {}", g->number, g->total, g->value, g->rewrite);
    return {{"number", g->number}, {"total", g->total}, {"value", g->value}, {"rewrite", g->rewrite}};
  }
  o.common.say("bisect: none of the {} rewrites changes a value, but planning does", total);
  return "planning";
}

nlohmann::json judged_json(const checking::Difference& d) {
  return {{"within", d.within},
          {"max", d.max},
          {"mean", d.mean},
          {"limit", d.limit},
          {"mismatches", d.mismatches},
          {"undecided", d.undecided}};
}

nlohmann::json judged_json(const checking::Agreement& a) {
  nlohmann::json j{{"snr_db", finite_number(a.snr)},
                   {"wanted_snr_db", finite_number(a.wanted_snr)},
                   {"cosine", finite_number(a.cosine)},
                   {"largest_error", a.largest},
                   {"allowed_error", a.allowed},
                   {"at", a.where},
                   {"mismatches", a.mismatches},
                   {"count", a.count},
                   {"fault", a.fault}};
  if (a.loss) j["score_loss"] = finite_number(a.loss->largest), j["allowed_score_loss"] = a.loss->allowed;
  if (a.ranking)
    j["ranking"] = {{"rows", a.ranking->rows}, {"top1", a.ranking->top1}, {"top5", a.ranking->top5}};
  return j;
}

const char* word(bool ok) { return ok ? "ok  " : "FAIL"; }

nlohmann::json report_values(const CheckOptions& o, const std::vector<checking::ValueCheck>& values) {
  auto list = nlohmann::json::array();
  for (const auto& v : values) {
    const auto text = v.problem.empty() ? to_string(v.difference) : v.problem;
    if (o.per_layer || !v.ok())
      o.common.say("{}  {:<40} {:<57} {}", word(v.ok()), v.name, "rewritten: " + v.made_by, text);
    auto row = judged_json(v.difference);
    row["within"] = v.ok();
    row["name"] = v.name, row["made_by"] = v.made_by, row["problem"] = v.problem;
    list.push_back(std::move(row));
  }
  return list;
}

nlohmann::json layers_json(const CheckOptions& o, const std::vector<checking::LayerCheck>& layers) {
  auto list = nlohmann::json::array();
  for (const auto& r : layers) {
    if (o.per_layer || !r.ok())
      o.common.say("{}  {:<40} {:<24} {:<32} {}", word(r.ok()), r.name, r.op, r.kernel,
                   r.note.empty() ? to_string(r.difference) : r.note);
    auto row = judged_json(r.difference);
    row["name"] = r.name, row["op"] = r.op, row["kernel"] = r.kernel, row["note"] = r.note;
    list.push_back(std::move(row));
  }
  return list;
}

nlohmann::json report_outputs(const CheckOptions& o, const std::vector<checking::OutputCheck>& outputs) {
  auto list = nlohmann::json::array();
  for (const auto& r : outputs) {
    if (r.note.empty())
      o.common.say("{}  output {} against the {}: {}", word(r.ok()), r.name, r.against,
                   r.agreement ? to_string(*r.agreement) : to_string(r.difference));
    else
      o.common.say("none  output {}: {}", r.name, r.note);
    auto row = judged_json(r.difference);
    row["name"] = r.name, row["against"] = r.against, row["note"] = r.note;
    if (r.agreement) row["agreement"] = judged_json(*r.agreement);
    list.push_back(std::move(row));
  }
  return list;
}

std::string drift_in_words(const checking::Difference& d) {
  if (!d.comparable) return "it has another shape";
  if (d.largest == 0 && d.max == 0 && d.mismatches == 0) return "none";
  if (d.largest == 0 && d.mismatches > 0)  // integers
    return fmt::format("{} elements differ, by {:.3g} at most", d.mismatches, d.max);
  return fmt::format("max {:.3g}, mean {:.2g}, of at most {:.3g}", d.max, d.mean, d.largest);
}

/// How far outputs with bf16 are from those in f32: to be known, not to be judged.
nlohmann::json report_drifts(const CheckOptions& o, const std::vector<checking::OutputCheck>& drifts) {
  auto list = nlohmann::json::array();
  for (const auto& r : drifts) {
    const auto& d = r.difference;
    o.common.say("drift output {} against {}: {}", r.name, r.against, drift_in_words(d));
    list.push_back({{"name", r.name},
                    {"against", r.against},
                    {"max", d.max},
                    {"mean", d.mean},
                    {"largest", d.largest},
                    {"mismatches", d.mismatches}});
  }
  return list;
}

/// The outputs of the last run, and those of --expect.
std::vector<checking::Output> outputs_of(const CheckOptions& o, const Session& s) {
  const auto& ports = s.model.outputs();
  // Arrays that are no outputs are not unpacked.
  const auto wanted = [&](const std::string& name, ElementType, const Dims&) {
    for (std::size_t i = 0; i < ports.size(); ++i)
      if (name == ports[i].name || name == "out" + std::to_string(i)) return true;
    return false;
  };
  const auto expected = o.expect.empty() ? NpzFile{} : read_npz(o.expect, wanted);
  std::vector<checking::Output> outputs;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    outputs.push_back({ports[i].name, s.request.output(i), {}});
    if (o.expect.empty()) continue;
    const auto* stored = find_array(expected, ports[i].name, "out" + std::to_string(i));
    if (!stored)
      fail(ErrorCode::bad_input, "{}: holds neither \"{}\" nor \"out{}\"", o.expect, ports[i].name, i);
    outputs.back().stored = as_stored(*stored, ports[i].type);
  }
  return outputs;
}

bool is_half(const Session& s) {
  const auto& ports = s.model.outputs();
  return s.impl().widened() ||
         std::any_of(ports.begin(), ports.end(), [](const Port& p) { return is_half(p.type); });
}

/// A line for a trial that went wrong (all of them where that is wanted), a document for each.
nlohmann::json report_trials(const CheckOptions& o, const std::vector<ConformanceRow>& rows,
                             std::size_t& faults) {
  auto list = nlohmann::json::array();
  for (const auto& r : rows) {
    const auto said = r.skipped ? std::string("none") : word(r.ok());
    const auto& text = r.ok() ? r.note : r.problem;
    if (o.per_layer || !r.ok() || r.skipped)
      o.common.say("{}  {:<40} {}: {}{}{}", said, r.node, r.op, r.tried, text.empty() ? "" : ": ", text);
    list.push_back({{"node", r.node},
                    {"op", r.op},
                    {"tried", r.tried},
                    {"within", r.ok()},
                    {"skipped", r.skipped},
                    {"note", r.note},
                    {"problem", r.problem}});
    if (!r.ok()) ++faults;
  }
  return list;
}

/// Libraries without a model: all of their operations.
int check_libraries(const CheckOptions& o) {
  if (o.common.extensions.empty()) throw UsageError("wanted MODEL, or --extensions alone");
  nlohmann::json j{{"model", nullptr}};
  std::vector<ConformanceRow> rows;
  std::set<std::string> tried;
  const ExtensionSet libraries(o.common.extensions);
  Progress progress("trying custom layers", o.common);
  for (const auto& library : libraries.all())
    for (auto& row : check_operations(*library)) {
      if (!row.skipped) tried.insert(row.op);
      rows.push_back(std::move(row));
    }
  std::size_t faults = 0, operations = 0;
  j["extensions"] = report_trials(o, rows, faults);
  for (const auto& library : libraries.all()) operations += library->operations.size();
  o.common.say("{}: {} of {} operations tried, {} trials, {} wrong", faults == 0 ? "clean" : "NOT clean",
               tried.size(), operations, rows.size(), faults);
  j["clean"] = faults == 0;
  write_json(o.common, j);
  return faults == 0 ? 0 : 1;
}

/// The model's custom layers, each in a process of its own, before any of them runs in this one.
nlohmann::json report_extensions(const CheckOptions& o, std::size_t& faults) {
  auto list = nlohmann::json::array();
  if (o.common.extensions.empty()) return list;
  const Model model = open_model(o.common);
  std::vector<std::string> notes;
  const auto inputs = gather_inputs(model, o.inputs, o.common, notes);
  Progress progress("trying custom layers of " + o.common.model, o.common);
  list = report_trials(o, check_extensions(specialise(Inside::of(model).loaded().graph, inputs, {})), faults);
  o.common.say("{}: {} trials of custom layers, {} wrong", faults == 0 ? "clean" : "NOT clean", list.size(),
               faults);
  return list;
}

/// The document has what was found before.
int checked(const CheckOptions& o, Session& s, nlohmann::json j) {
  const auto found = [&] {
    Progress progress("checking " + o.common.model, o.common);
    s.advance(o.steps - 1);
    s.request.run();
    checking::Run last{s.impl().original(), s.inputs, Inside::runner_of(s.request).plans(), outputs_of(o, s),
                       is_half(s)};
    last.with_levels = [&] { return checking::with_levels(s.impl()); };
    if (precisions_of(s.impl(), s.request).bf16())  // else it is a run in f32, whatever was asked for
      last.before_bf16 = [&](const checking::RunPart& part) { return checking::before_bf16(s.impl(), part); };
    return checking::check_run(last, [&](double done) { progress.at(done); });
  }();
  j["rewriting"] = report_values(o, found.values);
  j["layers"] = layers_json(o, found.layers);
  j["outputs"] = report_outputs(o, found.outputs);
  j["drift"] = report_drifts(o, found.drifts);
  const auto precisions = precisions_of(s.impl(), s.request);
  const auto precision = to_string(precisions);
  if (s.impl().precision() == Precision::bf16 && !precisions.bf16())
    o.common.say("drift none: nothing is in bf16");
  o.common.say("precision   {}", precision);
  j["precision"] = precision;
  if (o.bisect) j["bisect"] = bisect(o, s, found);
  const auto faults = found.faults();
  o.common.say("{}: {} values of the model and {} layers checked, {} wrong",
               faults == 0 ? "clean" : "NOT clean", found.values.size(), found.layers.size(), faults);
  j["clean"] = faults == 0;
  write_json(o.common, j);
  return faults == 0 ? 0 : 1;
}

int run(const CheckOptions& o) {
  const RepeatedDraws repeated;
  if (!o.against.f32.empty()) {
    if (o.common.model.empty()) throw UsageError("--against: wanted MODEL, too");
    return check_against(o.common, o.inputs, o.against);
  }
  if (!o.against.html.empty() || !o.against.data.empty())
    throw UsageError(fmt::format("{}: wanted --against, too", o.against.data.empty() ? "--html" : "--data"));
  if (o.common.model.empty()) return check_libraries(o);
  nlohmann::json j{{"model", o.common.model}};
  std::size_t faulty_trials = 0;
  j["extensions"] = report_extensions(o, faulty_trials);
  if (faulty_trials != 0) {  // what they would do to this process is anybody's guess
    j["clean"] = false;
    write_json(o.common, j);
    return 1;
  }
  auto options = o.common.options();
  options.keep_weights = true;  // the interpreter reads them
  Session s(o.common, o.inputs, options);
  o.common.note(s.notes);
  int status = 0;
  on_threads(s.compiled.threads(),
             [&] { status = checked(o, s, std::move(j)); });  // the interpreter's loops, too
  return status;
}

}  // namespace

Verb setup_check(OptionSet& options) {
  auto o = std::make_shared<CheckOptions>();
  add_model(options, o->common, false);
  options.remark("Without MODEL: checks all operations of the libraries of --extensions, on their samples.");
  add_input_options(options, o->inputs);
  const auto expect =
      options.text("--expect", o->expect, "FILE.npz", "Stored outputs, by name or as out0, out1, ...");
  const auto steps = options.number(
      "--steps", o->steps, 1, 1000000, "N",
      "Check the N-th run of a model with variables; the interpreter makes the runs before it");
  const auto layers =
      options.flag("--per-layer", o->per_layer, "Print every value of the model and every layer");
  const auto bisect =
      options.flag("--bisect", o->bisect, "Also name the first rewrite that changes the result");
  auto against =
      options.text("--against", o->against.f32, "F32MODEL",
                   "Only compare a quantised model with the f32 model that it was made of: noise of each "
                   "layer, and which layers are best left in f32");
  for (const auto& other : {expect, steps, layers, bisect}) against.excludes(other);
  options.text("--data", o->against.data, "FOLDER",
               "With --against: a folder of samples in place of --input: images, .npy, .npz, as `lamina "
               "quantize` takes them");
  options.number("--samples", o->against.samples, std::size_t{1}, std::size_t{1000000}, "N",
                 "With --data: number of samples to take, spread evenly over the folder (8)");
  options.text("--html", o->against.html, "FILE.html",
               "With --against: write the noise as a page with bars; a click on a heading sorts");
  add_compile_options(options, o->common);
  add_json(options, o->common);
  return [o] { return run(*o); };
}

}  // namespace lamina::tool
