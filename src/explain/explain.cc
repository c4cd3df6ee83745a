/// The public functions of lamina/explain.h.
#include "lamina/explain.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "api/inside.h"
#include "api/saving.h"
#include "base/guard.h"
#include "base/json_text.h"
#include "base/users_calls.h"
#include "explain/documents.h"
#include "explain/explaining.h"
#include "explain/machine_file.h"
#include "explain/names.h"
#include "explain/rewriting_page.h"
#include "explain/rows.h"
#include "explain/why.h"

namespace lamina {
namespace {

/// Without what Options::max_isa leaves out. The level of that machine for oneDNN, too, where that can be
/// had: it answers for itself then.
Machine described_machine(const std::string& path, Options& options) {
  auto machine = read_machine_file(path);
  for (const auto isa : {Isa::sse41, Isa::avx2, Isa::avx512})
    if (options.max_isa == name_of(isa)) machine = limited(std::move(machine), isa);
  if (machine.isa() < native_isa()) options.max_isa = name_of(machine.isa());
  return machine;
}

void check_explain_options(const ExplainOptions& o) {
  if (o.seconds && (!(*o.seconds >= 0) || *o.seconds > 86400))
    fail(ErrorCode::bad_option, "{} seconds of measuring, wanted 0 to 86400", *o.seconds);
  if (o.seconds && !o.machine.empty())
    fail(ErrorCode::bad_option, "seconds: nothing can run on the machine of {}", o.machine);
  if (!o.inputs.empty() && !o.shapes.empty())
    fail(ErrorCode::bad_option, "inputs have shapes: wanted one of both lists");
  if (o.command_options.size() % 2 != 0)
    fail(ErrorCode::bad_option, "{} words of command_options, wanted pairs", o.command_options.size());
}

/// Compiles the model and explains it.
Explanation explain_model(const std::shared_ptr<const LoadedModel>& model, Options how,
                          ExplainOptions options) {
  how.keep_weights = true;  // what was chosen and why is not in the files of compiled models
  if (options.progress) how.progress = options.progress;
  if (options.stop.stop_possible()) how.stop = options.stop;
  options.stop = how.stop;
  const bool described = !options.machine.empty();
  std::shared_ptr<const Machine> machine;
  if (described) machine = std::make_shared<const Machine>(described_machine(options.machine, how));
  return Explaining::of(std::make_shared<const Compiled>(model, how, machine), options, described);
}

Explanation explain_compiled(const CompiledModel& model, const ExplainOptions& options) {
  const auto compiled = Inside::of(model).shared_from_this();
  if (options.machine.empty() && !compiled->loaded_from_cache())
    return Explaining::of(compiled, options, false);
  if (!as_it_was_read(compiled->model()))
    fail(ErrorCode::bad_file, "{}: was changed since it was read", compiled->model().path());
  auto how = compiled->options();
  how.progress = {};
  how.stop = {};
  how.log = {};  // the user has been told
  how.cache_dir.clear();
  return explain_model({compiled, &compiled->model()}, how, options);
}

}  // namespace

std::string_view name_of(LayerFate fate) noexcept {
  return name_of(static_cast<LayerOutcome::Kind>(fate));  // the same list
}

std::string to_string(const RuleEvent& event) {
  return guarded("to_string", [&] {
    LedgerEntry entry;
    entry.kind = event.kind == RuleEvent::Kind::fired     ? LedgerEntry::Kind::fired
                 : event.kind == RuleEvent::Kind::refused ? LedgerEntry::Kind::refused
                                                          : LedgerEntry::Kind::removed;
    entry.rule = event.rule;
    entry.node = event.node;
    entry.text = event.text;
    return to_string(entry);
  });
}

std::vector<const LayerExplanation*> Explanation::layers_named(std::string_view name) const {
  return guarded("Explanation::layers_named", [&] {
    std::vector<const LayerExplanation*> out;
    for (const auto* f : outcomes_named(Explaining::state_of(*this).all, name))
      if (f->id.index < layers.size()) out.push_back(&layers[f->id.index]);
    return out;
  });
}

ModelVerdict Explanation::verdict() const {
  return guarded("Explanation::verdict", [&] {
    const auto& state = Explaining::state_of(*this);
    return explaining(*state.compiled, state.stop, [&] { return ModelVerdict(state.verdict()); });
  });
}

namespace {

RuleAnswer answer_of(const Explanation::State& state, std::string_view name, std::string_view layer) {
  const auto& compiled = *state.compiled;
  const auto& all = state.all;
  const auto& rule = rule_named(name, compiled.model().rules());
  RuleAnswer out{.model = state.model,
                 .rule = rule.name,
                 .layer = std::string(layer),
                 .history = {},
                 .plan = {},
                 .text = {}};
  const auto layers = outcomes_named(all, layer);
  std::set<std::pair<std::string, std::size_t>> said;  // of several layers of that name
  for (const auto* f : layers)
    for (const auto& e : entries_of(rule, compiled, all.plans, *f))
      if (said.emplace(to_string(e), e.order).second) out.history.push_back(event_of(e));
  for (const auto* f : layers)
    for (auto& text : plan_sentences(all.plans, all.outcomes, *f)) out.plan.push_back(std::move(text));
  if (out.history.empty()) out.text = why_silent(rule, compiled, all.plans, *layers[0]);
  return out;
}

}  // namespace

RuleAnswer Explanation::why(std::string_view rule, std::string_view layer) const {
  return guarded("Explanation::why", [&] {
    const auto& state = Explaining::state_of(*this);
    return explaining(*state.compiled, state.stop, [&] { return answer_of(state, rule, layer); });
  });
}

std::string RuleAnswer::json() const {
  return guarded("RuleAnswer::json", [&] { return json_text(to_json(*this)); });
}

std::vector<std::string> Explanation::plans() const {
  return guarded("Explanation::plans", [&] {
    std::vector<std::string> out;
    for (const auto& plan : Explaining::state_of(*this).all.plans) out.push_back(to_text(*plan));
    return out;
  });
}

std::string Explanation::rewriting_page(const ProgressCallback& progress) const {
  return guarded("Explanation::rewriting_page", [&] {
    const auto& state = Explaining::state_of(*this);
    return explaining(*state.compiled, state.stop, [&] {
      const auto name = std::filesystem::path(state.model).filename().string();
      return lamina::rewriting_page(name, *state.compiled, state.inputs, of_user(progress));
    });
  });
}

std::string Explanation::json(const ExplainDocument& part) const {
  return guarded("Explanation::json", [&] {
    const auto& state = Explaining::state_of(*this);
    return explaining(*state.compiled, state.stop, [&] {
      std::vector<const LayerExplanation*> shown;
      if (part.layer)
        shown = layers_named(*part.layer);
      else
        for (const auto& layer : layers) shown.push_back(&layer);
      auto document = to_json(*this);
      const auto& machine = state.compiled->program()->machine();
      document["machine"] = to_json(machine.here ? whole_machine() : machine);
      document["layers"] = to_json(shown, timed());
      if (part.plans) document["plans"] = plans();
      if (!part.layer && !part.plans) document["verdict"] = to_json(state.verdict());
      return json_text(document);
    });
  });
}

void require_layer(const Model& model, std::string_view name) {
  guarded("require_layer", [&] { require_possible(Inside::of(model).described().graph, name); });
}

void require_rule(const Model& model, std::string_view name) {
  guarded("require_rule", [&] { rule_named(name, Inside::of(model).rules()); });
}

Explanation explain(const CompiledModel& model, const ExplainOptions& options) {
  return guarded("explain", [&] {
    check_explain_options(options);
    return explain_compiled(model, options);
  });
}

Explanation explain(const Model& model, const Options& options, const ExplainOptions& explain_options) {
  return guarded("explain", [&] {
    check_explain_options(explain_options);
    return explain_model(Inside::shared(model), options, explain_options);
  });
}

}  // namespace lamina
