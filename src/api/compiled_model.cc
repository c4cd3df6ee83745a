#include <algorithm>
#include <map>

#include "api/inside.h"
#include "api/on_shapes.h"
#include "api/request_state.h"
#include "base/cpu.h"
#include "base/guard.h"
#include "base/log.h"
#include "base/mapped_file.h"
#include "base/parallel.h"
#include "base/shape_only.h"
#include "kernels/onednn_isa.h"
#include "rules/flush_denormals.h"
#include "rules/optimize.h"
#include "rules/widen_half.h"

namespace lamina {
namespace {

/// Memory of constants that lie in a mapped file.
void drop_pages(const Graph& graph) {
  for (std::uint32_t v = 0; v < graph.value_slots(); ++v)
    if (const auto* constant = graph.constant({v})) drop_mapped_pages(constant->raw(), constant->bytes());
}

/// What Options::set refuses is refused here, too.
Options checked(const Options& o) {
  if (o.threads < 0 || o.threads > kMostThreads)
    fail(ErrorCode::bad_option, "threads {}: wanted 0 to {}", o.threads, kMostThreads);
  if (o.cached_plans < 1 || o.cached_plans > 1000)
    fail(ErrorCode::bad_option, "cached_plans {}: wanted 1 to 1000", o.cached_plans);
  if (o.precision != Precision::model && o.precision != Precision::f32 && o.precision != Precision::bf16)
    fail(ErrorCode::bad_option, "precision {}: wanted model, f32 or bf16", static_cast<int>(o.precision));
  return o;
}

/// What the option does to the model; the notes of reading half precision come before.
void add_note(std::vector<std::string>& notes, Precision precision) {
  if (precision == Precision::bf16) notes.push_back("bf16 is not used yet: everything runs in f32");
  if (precision == Precision::f32)
    notes.push_back("f32 was asked for: floating-point values are f32 and quantise steps literal anyway");
}

/// Tells after each set of rules.
OptimizeOptions telling(OptimizeOptions options, const ProgressCallback& progress) {
  if (progress)
    options.after_set = [progress, done = 0](const Graph&, std::string_view) mutable {
      progress("rewriting", ++done / (1.0 + static_cast<double>(RuleSet::chains)));
    };
  return options;
}

}  // namespace

OptimizeOptions optimize_options(const Options& options) {
  OptimizeOptions o;
  o.disable = options.disable;
  o.exempt = options.exempt;
  o.stop_after = options.stop_after;
  if (std::erase(o.disable, "all") != 0)  // beside it other names must be known, too
    for (const auto& rule : all_rules()) o.disable.push_back(rule.name);
  return o;
}

Compiled::Compiled(std::shared_ptr<const LoadedModel> model, const Options& options)
    : model_(std::move(model)), options_(checked(options)), original_(model_->loaded().graph) {
  model_->require_supported();
  const Logger log(options.log, LogLevel::debug);
  if (options.max_isa != "native") limit_isa(options.max_isa, limit_onednn);
  effective_isa();  // fixes it for the process
  if (const auto note = onednn_isa_note(); !note.empty()) log.warning("{}", note);
  precision_notes_ = widen_half(original_);
  widened_ = !precision_notes_.empty();
  for (const auto& note : precision_notes_) log.warning("{}", note);
  std::vector<std::string> asked;
  add_note(asked, options.precision);
  for (const auto& note : asked)
    log.log(options.precision == Precision::f32 ? LogLevel::info : LogLevel::warning, "{}", note);
  precision_notes_.insert(precision_notes_.end(), asked.begin(), asked.end());

  auto stateless = without_variables(std::move(original_));
  original_ = stateless.graph;
  const auto rewriting = optimize_options(options);
  Graph& graph = stateless.graph;
  for (const auto& pattern : Exemptions(rewriting.exempt).idle(original_))
    log.warning("exempt \"{}\": fits the name of no node", pattern);
  optimize(graph, telling(rewriting, options.progress), ledger_);
  for (const auto& [rule, count] : ledger_.counts())
    if (count.hits) log.log(LogLevel::debug, "{}: {} times", rule, count.hits);
  denormals_ = flush_denormals(graph);
  ProgramOptions program;
  program.threads =
      allowed_threads(options.threads > 0 ? options.threads : std::min(available_threads(), threads_here()));
  if (program.threads < options.threads)
    log.warning("{} threads, of {} wanted: this process limits oneTBB (tbb::global_control)", program.threads,
                options.threads);
  program.keep_weights = options.keep_weights;
  program.progress = options.progress;
  program.cached_plans = options.cached_plans;
  // With a limit on rewrites the specialised graph must not get further ones.
  late_rewriting_ = rewriting;
  if (late_rewriting_.stop_after >= 0) late_rewriting_.stop_after = 0;
  program.rewrite = [again = late_rewriting_, progress = options.progress](Graph& g) {
    Ledger ledger;
    optimize(g, telling(again, progress), ledger);
    return ledger;
  };
  drop_pages(original_);  // what folding has read
  const auto ready =
      std::make_shared<Program>(std::move(stateless), std::move(program), std::make_shared<ModelWeights>());
  ready->plan_ahead();
  program_ = ready;
  if (const auto found = denormals()) log.log(LogLevel::info, "{}", to_string(found));
  if (!options.keep_weights) forget_weights(original_);
}

Denormals Compiled::denormals() const {
  auto sum = denormals_;
  return sum += program_->denormals();
}

std::vector<std::string> Compiled::precision_notes() const {
  auto notes = precision_notes_;
  if (const auto found = denormals()) notes.push_back(to_string(found));
  return notes;
}

std::vector<Port> Compiled::output_ports(const std::vector<Dims>& shapes) const {
  const auto& ports = model_->inputs();
  if (shapes.size() != ports.size())
    fail(ErrorCode::bad_input, "{} shapes given, wanted {}", shapes.size(), ports.size());
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < ports.size(); ++i)
    inputs.push_back(naming_port("input", ports[i], [&] {
      element_count(shapes[i]);
      return shape_only(ports[i].type, shapes[i]);
    }));
  auto all = inputs;
  for (const auto& v : program_->variables()) {
    if (!v.initial.valid() && !v.type.shape.known()) return model_->outputs();  // the first run tells
    all.push_back(v.initial.valid() ? v.initial : shape_only(v.type.element, v.type.shape.sizes()));
  }
  return on_shapes(ports, inputs, [&] {
    Graph known = specialise(program_->graph(), all, {});
    const auto& results = known.results();
    const bool all_known = std::all_of(results.begin(), results.end(),
                                       [&](const auto& r) { return known.type(r.value).shape.known(); });
    if (!all_known) {  // where a shape is computed, folding may find it
      Ledger ledger;
      optimize(known, late_rewriting_, ledger);
    }
    auto out = model_->outputs();
    for (std::size_t r = 0; r < out.size(); ++r) {
      const auto type = known.type(known.results()[r].value);
      out[r] = port_of(out[r].name, {out[r].type, type.shape});
    }
    return out;
  });
}

Compiled::Pooled::Pooled(const Compiled& compiled) : pool_(compiled.pool_) {
  {
    std::lock_guard lock(pool_->mutex);
    if (!pool_->idle.empty()) one_.splice(one_.begin(), pool_->idle, pool_->idle.begin());
  }
  if (one_.empty()) one_.push_back(compiled.request());
  one_.front().reset_state();
}

Compiled::Pooled::~Pooled() {
  auto& state = Inside::state(one_.front());
  for (std::size_t i = 0; i < state.inputs.size(); ++i) state.set_input(i, {});
  std::lock_guard lock(pool_->mutex);
  pool_->idle.splice(pool_->idle.begin(), one_);
}

const Compiled& Inside::of(const CompiledModel& compiled) {
  if (!compiled.impl_) fail(ErrorCode::bad_call, "the compiled model was moved from");
  return *compiled.impl_;
}

CompiledModel::CompiledModel(const Model& model, const Options& options)
    : impl_(guarded("CompiledModel",
                    [&] { return std::make_shared<Compiled>(Inside::shared(model), options); })) {}

const std::vector<Port>& CompiledModel::inputs() const {
  return guarded(
      "CompiledModel::inputs", [&]() -> auto& { return Inside::of(*this).model().inputs(); });
}
const std::vector<Port>& CompiledModel::outputs() const {
  return guarded(
      "CompiledModel::outputs", [&]() -> auto& { return Inside::of(*this).model().outputs(); });
}
const std::vector<Port>& CompiledModel::variables() const {
  return guarded(
      "CompiledModel::variables", [&]() -> auto& { return Inside::of(*this).model().variables(); });
}
std::optional<std::size_t> CompiledModel::find_input(std::string_view name) const {
  return guarded("CompiledModel::find_input", [&] { return find_port(inputs(), name); });
}
std::optional<std::size_t> CompiledModel::find_output(std::string_view name) const {
  return guarded("CompiledModel::find_output", [&] { return find_port(outputs(), name); });
}
std::vector<Port> CompiledModel::output_ports(const std::vector<Dims>& shapes) const {
  return guarded("CompiledModel::output_ports", [&] { return Inside::of(*this).output_ports(shapes); });
}
Request CompiledModel::create_request() const {
  return guarded("CompiledModel::create_request", [&] { return Inside::of(*this).request(); });
}
int CompiledModel::threads() const {
  return guarded("CompiledModel::threads", [&] { return Inside::of(*this).threads(); });
}
std::size_t CompiledModel::weight_memory() const {
  return guarded("CompiledModel::weight_memory", [&] { return Inside::of(*this).program()->weight_bytes(); });
}

std::vector<Tensor> CompiledModel::operator()(const std::vector<Tensor>& inputs) const {
  return guarded("CompiledModel::operator()", [&] {
    const auto& compiled = Inside::of(*this);
    if (inputs.size() != compiled.model().inputs().size())
      fail(ErrorCode::bad_input, "{} inputs given, wanted {}", inputs.size(),
           compiled.model().inputs().size());
    Compiled::Pooled request(compiled);
    for (std::size_t i = 0; i < inputs.size(); ++i) request->set_input(i, inputs[i]);
    request->run();
    std::vector<Tensor> out;
    for (std::size_t i = 0; i < outputs().size(); ++i) out.push_back(request->output(i).clone());
    return out;
  });
}

Tensor CompiledModel::operator()(const Tensor& input) const {
  return guarded("CompiledModel::operator()", [&] {
    auto out = (*this)(std::vector<Tensor>{input});
    if (out.empty()) fail(ErrorCode::bad_call, "the model has no output");
    return std::move(out[0]);
  });
}

std::vector<Fusion> CompiledModel::fusions() const {
  return guarded("CompiledModel::fusions", [&] {
    std::vector<Fusion> out;
    for (const auto& [rule, count] : Inside::of(*this).ledger().counts())
      if (count.hits) out.push_back({rule, count.hits});
    return out;
  });
}

}  // namespace lamina
