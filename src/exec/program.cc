#include "exec/program.h"

#include <algorithm>
#include <chrono>

#include "base/arena.h"
#include "base/shape_only.h"

namespace lamina {
namespace {

using Clock = std::chrono::steady_clock;

std::int64_t nanoseconds_since(Clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
}

}  // namespace

Program::Program(Stateless model, ProgramOptions options, std::shared_ptr<ModelWeights> weights)
    : graph_(std::move(model.graph)),
      shared_(new Shared{std::move(options), std::move(weights),
                         std::make_shared<const Addresses>(constants_of(graph_))}),
      values_(graph_.inputs().size(), false),
      variables_(std::move(model.variables)),
      own_cache_(std::make_shared<PlanCache>(shared_->options.cached_plans, shared_->options.cached_bytes)),
      cache_(own_cache_),
      constants_(shared_->constants) {
  for (std::size_t v = 0; v < variables_.size(); ++v)
    if (variables_[v].result) carried_.push_back({model_inputs() + v, *variables_[v].result});
  if (!model.initial) return;
  auto rarely = shared_->options;  // used at the beginning of a sequence only
  rarely.cached_plans = 1;
  rarely.kept = nullptr;
  rarely.whole = nullptr;
  rarely.planned = nullptr;
  const auto initial = std::make_shared<Program>(std::move(*model.initial), std::move(rarely),
                                                 std::make_shared<ModelWeights>());
  for (std::size_t r = 0; r < initial->graph_.results().size(); ++r) initial->carried_.push_back({{}, r});
  initial_values_ = initial;
}

Program::Program(const Plan& plan, const Program& parent, const std::string& key)
    : graph_(*plan.rest),
      shared_(parent.shared_),
      values_(plan.rest_values),
      cache_(parent.cache_),
      above_(parent.above_),
      constants_(std::make_shared<const Addresses>(constants_of(graph_))) {
  above_.push_back(key);
  for (const auto& c : parent.carried_) {
    const auto at = std::find(plan.rest_results.begin(), plan.rest_results.end(), c.result);
    if (at != plan.rest_results.end())
      carried_.push_back({{}, static_cast<std::size_t>(at - plan.rest_results.begin())});
  }
}

double Program::rewriting_seconds() const {
  return 1e-9 * static_cast<double>(shared_->rewriting) +
         (initial_values_ ? initial_values_->rewriting_seconds() : 0);
}

double Program::planning_seconds() const {
  return 1e-9 * static_cast<double>(shared_->planning) - shared_->weights->packing_seconds() +
         (initial_values_ ? initial_values_->planning_seconds() : 0);
}

double Program::packing_seconds() const {
  return shared_->weights->packing_seconds() + (initial_values_ ? initial_values_->packing_seconds() : 0);
}

/// The keys of a deferred subgraph's plans begin with the key of the plan that it belongs to.
std::string Program::key_of(const std::vector<Tensor>& inputs) const {
  std::string key = above_.empty() ? std::string() : above_.back();
  const auto append = [&](const void* data, std::size_t bytes) {
    key.append(static_cast<const char*>(data), bytes);
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto& t = inputs[i];
    const auto rank = t.rank();
    append(&rank, sizeof(rank));
    append(t.shape().data(), rank * sizeof(std::int64_t));
    const auto type = t.element_type();  // not every graph says what it takes
    append(&type, sizeof(type));
    if (values_[i]) append(t.raw(), t.bytes());
  }
  return key + '.';
}

std::shared_ptr<const Planned> Program::plan(const std::vector<Tensor>& inputs,
                                             const std::string& key) const {
  bool made = false;
  const auto cache = cache_.lock();
  LAMINA_CHECK(cache, "a deferred subgraph outlives its model");
  const auto kept = shared_->kept.load();
  const auto& options = shared_->options;
  auto planned = cache->get(key, above_, [&] {
    made = true;
    return run_stoppable({.what = "planning for these shapes",
                          .seconds = options.plan_seconds,
                          .seconds_key = "LIMIT_COMPILE_SECONDS"},
                         [&] { return make(inputs, key); });
  });
  if (made) shared_->weights->sweep();  // of plans that had to go
  if (made && shared_->options.planned && shared_->kept == kept) shared_->options.planned();
  return planned;
}

const Graph& Program::whole() const {
  if (!above_.empty() || !shared_->options.whole) return graph_;
  shared_->whole_made([&] {
    shared_->whole = shared_->options.whole();
    shared_->whole_constants = constants_of(shared_->whole);
  });
  return shared_->whole;
}

namespace {

/// Checks before the first run that the memory between layers is within the limit; the error names the
/// largest tensor. Whether the machine has the memory is checked when a stream allocates it.
void require_room(const Plan& plan) {
  const PlanTensor* largest = nullptr;
  for (const auto& t : plan.tensors)
    if (t.place == Place::arena && (!largest || t.bytes > largest->bytes)) largest = &t;
  if (!largest || !Within::here()) return;
  require_within_bounds(fmt::format("memory between layers, with \"{}\" {}",
                                    plan.graph.value(largest->value).name, to_string(largest->type)),
                        plan.memory.arena);
}

}  // namespace

std::shared_ptr<Planned> Program::make_kept(const std::string& key) const {
  const auto& options = shared_->options;
  if (!options.kept) return nullptr;
  try {
    auto kept = options.kept->find(key, options.threads);
    if (!kept) return nullptr;
    const auto constants = constants_of(kept->graph);
    NotingWeights weights(*shared_->weights, constants);
    const auto plan = remake_plan(std::move(kept->graph), kept->recipes, weights,
                                  {options.threads, &machine(), {}, 0, options.progress});
    auto planned = std::make_shared<Planned>();
    planned->bytes = bytes_of(*plan, constants, weights);
    planned->plan = plan;
    ++shared_->kept;
    return planned;
  } catch (const Error& e) {
    if (ends_the_work(e.code())) throw;
    if (options.kept_fails) options.kept_fails(e);
    return nullptr;
  }
}

std::shared_ptr<Planned> Program::make_new(const std::vector<Tensor>& inputs) const {
  const auto begin = Clock::now();
  const auto& options = shared_->options;
  const Graph& graph = whole();
  const bool late = &graph != &graph_;
  Graph known = specialise(graph, inputs, values_);
  Ledger ledger;
  if (options.rewrite) ledger = options.rewrite(known, carried_);
  shared_->rewriting += nanoseconds_since(begin);
  const Addresses& of_model = late            ? shared_->whole_constants
                              : options.whole ? *constants_
                                              : *shared_->constants;
  NotingWeights weights(*shared_->weights, of_model);
  const auto plan =
      make_plan(std::move(known), weights,
                {options.threads, &machine(), options.force, options.any_kernels, options.progress});
  plan->ledger = std::move(ledger);
  ++shared_->made;
  auto planned = std::make_shared<Planned>();
  planned->bytes = bytes_of(*plan, late ? shared_->whole_constants : *constants_, weights);
  planned->plan = plan;
  return planned;
}

std::shared_ptr<const Planned> Program::make(const std::vector<Tensor>& inputs,
                                             const std::string& key) const {
  const auto begin = Clock::now();
  const auto rewriting = shared_->rewriting.load();
  auto planned = make_kept(key);
  if (!planned) planned = make_new(inputs);
  require_room(*planned->plan);
  shared_->planning += nanoseconds_since(begin) - (shared_->rewriting - rewriting);
  if (planned->plan->rest)
    planned->rest = std::shared_ptr<const Program>(new Program(*planned->plan, *this, key));
  return planned;
}

std::vector<TensorType> Program::result_types(std::vector<Tensor> inputs) const {
  const auto types_of = [](const Graph& graph) {
    std::vector<TensorType> out;
    for (const auto& r : graph.results()) out.push_back(graph.type(r.value));
    return out;
  };
  for (const auto& v : variables_) {
    if (!v.initial.valid() && !v.type.shape.known()) return types_of(graph_);  // the first run tells
    inputs.push_back(v.initial.valid() ? v.initial : shape_only(v.type.element, v.type.shape.sizes()));
  }
  auto types = types_of(specialise(graph_, inputs, {}));
  const bool all_known =
      std::all_of(types.begin(), types.end(), [](const TensorType& t) { return t.shape.known(); });
  if (all_known || !shared_->options.rewrite) return types;
  Graph known = specialise(whole(), inputs, {});
  shared_->options.rewrite(known, carried_);  // where a shape is computed, folding may find it
  return types_of(known);
}

std::optional<std::vector<Tensor>> Program::known_inputs() const {
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < graph_.inputs().size(); ++i) {
    const auto& type = graph_.type(graph_.inputs()[i]);
    if (!type.shape.known() || type.element == ElementType::undefined || values_[i]) return {};
    inputs.push_back(shape_only(type.element, type.shape.sizes()));
  }
  return inputs;
}

std::shared_ptr<const Plan> Program::plan_for_looking() const {
  const auto inputs = known_inputs();
  if (!inputs) return nullptr;
  std::shared_ptr<const Planned> planned;
  on_threads(threads(), [&] { planned = make(*inputs, key_of(*inputs)); });
  return planned->plan;
}

void Program::plan_ahead() {
  const auto known = known_inputs();
  if (!known) return;
  const auto& inputs = *known;
  const auto key = key_of(inputs);
  on_threads(threads(), [&] { ahead_ = own_cache_->get(key, {}, [&] { return make(inputs, key); }); });
}

bool Program::forget_weights_read() {
  const auto ahead = std::move(ahead_);
  if (shared_->options.keep_weights || !ahead || ahead->rest) return false;
  forget_weights(std::const_pointer_cast<Plan>(ahead->plan)->graph);  // nobody else has it yet
  forget_weights(graph_);                                             // there will be no other plan
  shared_->weights->forget_sources();
  return true;
}

}  // namespace lamina
