#include <algorithm>
#include <map>

#include "api/compiled.h"
#include "api/loaded_model.h"
#include "base/cpu.h"
#include "base/log.h"
#include "base/mapped_file.h"
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

void require_model_supported(const LoadedModel& model) {
  if (model.unsupported().empty()) return;
  std::string text;
  for (const auto& u : model.unsupported()) text += (text.empty() ? "" : "; ") + u;
  fail(ErrorCode::unsupported, "{}: unsupported: {}", model.path(), text);
}

}  // namespace

OptimizeOptions optimize_options(const Options& options) {
  OptimizeOptions o;
  o.disable = options.disable;
  o.exempt = options.exempt;
  o.stop_after = options.stop_after;
  if (std::find(o.disable.begin(), o.disable.end(), "all") != o.disable.end()) {
    o.disable.clear();
    for (const auto& rule : all_rules()) o.disable.push_back(rule.name);
  }
  return o;
}

Compiled::Compiled(std::shared_ptr<const LoadedModel> model, const Options& options)
    : model_(std::move(model)), options_(options), original_(model_->loaded().graph) {
  require_model_supported(*model_);
  const Logger log(options.log, LogLevel::debug);
  if (options.max_isa != "native") limit_isa(options.max_isa);
  effective_isa();  // fixes it for the process
  precision_notes_ = widen_half(original_);
  widened_ = !precision_notes_.empty();
  if (options.precision == Precision::bf16)
    precision_notes_.push_back("bf16 is not used yet: everything runs in f32");
  for (const auto& note : precision_notes_) log.warning("{}", note);

  auto stateless = without_variables(std::move(original_));
  original_ = stateless.graph;
  const auto rewriting = optimize_options(options);
  Graph& graph = stateless.graph;
  optimize(graph, rewriting, ledger_);
  for (const auto& [rule, count] : ledger_.counts())
    if (count.hits) log.log(LogLevel::debug, "{}: {} times", rule, count.hits);
  denormals_ = flush_denormals(graph);
  if (options.threads < 0) fail(ErrorCode::bad_option, "threads {}: wanted 0 or more", options.threads);
  ProgramOptions program;
  program.threads = options.threads > 0 ? options.threads : available_threads();
  program.keep_weights = options.keep_weights;
  program.cached_plans = std::max<std::size_t>(1, options.cached_plans);
  // With a limit on rewrites the specialised graph must not get further ones.
  auto again = rewriting;
  if (again.stop_after >= 0) again.stop_after = 0;
  program.rewrite = [again, late = late_, keep = options.profile](Graph& g) {
    constexpr std::size_t kKept = 16;
    Ledger ledger;
    optimize(g, again, ledger);
    if (!keep) return;
    std::lock_guard lock(late->mutex);
    if (late->ledgers.size() >= kKept) late->ledgers.erase(late->ledgers.begin());
    late->ledgers.push_back(std::move(ledger));
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

std::vector<Ledger> Compiled::late_ledgers() const {
  std::lock_guard lock(late_->mutex);
  return late_->ledgers;
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
  std::lock_guard lock(pool_->mutex);
  pool_->idle.splice(pool_->idle.begin(), one_);
}

CompiledModel::CompiledModel(const Model& model, const Options& options)
    : impl_(std::make_shared<Compiled>(model.share(), options)) {}

const std::vector<Port>& CompiledModel::inputs() const { return impl_->model().inputs(); }
const std::vector<Port>& CompiledModel::outputs() const { return impl_->model().outputs(); }
const std::vector<Port>& CompiledModel::variables() const { return impl_->model().variables(); }
Request CompiledModel::create_request() const { return impl_->request(); }
int CompiledModel::threads() const { return impl_->threads(); }
std::size_t CompiledModel::weight_memory() const { return impl_->program()->weight_bytes(); }
std::shared_ptr<const Compiled> CompiledModel::share() const { return impl_; }

std::vector<Tensor> CompiledModel::operator()(const std::vector<Tensor>& inputs) const {
  if (inputs.size() != this->inputs().size())
    fail(ErrorCode::bad_input, "{} inputs given, wanted {}", inputs.size(), this->inputs().size());
  Compiled::Pooled request(*impl_);
  for (std::size_t i = 0; i < inputs.size(); ++i) request->set_input(i, inputs[i]);
  request->run();
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < outputs().size(); ++i) out.push_back(request->output(i).clone());
  return out;
}

std::vector<Fusion> CompiledModel::fusions() const {
  std::vector<Fusion> out;
  for (const auto& [rule, count] : impl_->ledger().counts())
    if (count.hits) out.push_back({rule, count.hits});
  return out;
}

}  // namespace lamina
