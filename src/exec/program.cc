#include "exec/program.h"

#include <tbb/task_arena.h>

#include <algorithm>
#include <chrono>

#include "base/shape_only.h"

namespace lamina {

Program::Program(Stateless model, ProgramOptions options, std::shared_ptr<ModelWeights> weights)
    : graph_(std::move(model.graph)),
      options_(std::move(options)),
      weights_(std::move(weights)),
      values_(graph_.inputs().size(), false),
      variables_(std::move(model.variables)),
      own_cache_(std::make_shared<PlanCache>(options_.cached_plans, options_.cached_bytes)),
      cache_(own_cache_) {
  if (!options_.clock) options_.clock = std::make_shared<PlanClock>();
  constants_ = model_constants_ = std::make_shared<const Addresses>(constants_of(graph_));
  if (!model.initial) return;
  auto rarely = options_;  // used at the beginning of a sequence only
  rarely.cached_plans = 1;
  initial_values_ = std::make_shared<Program>(std::move(*model.initial), std::move(rarely),
                                              std::make_shared<ModelWeights>());
}

Program::Program(const Plan& plan, const Program& parent, const std::string& key)
    : graph_(*plan.rest),
      options_(parent.options_),
      weights_(parent.weights_),
      values_(plan.rest_values),
      cache_(parent.cache_),
      above_(parent.above_),
      model_constants_(parent.model_constants_),
      constants_(std::make_shared<const Addresses>(constants_of(graph_))) {
  above_.push_back(key);
}

/// Keys of waiting parts begin with that of the plan that they are a part of.
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
  LAMINA_CHECK(cache, "a waiting part outlives its model");
  auto planned = cache->get(key, above_, [&] {
    made = true;
    return make(inputs, key);
  });
  if (made) weights_->sweep();  // of plans that had to go
  return planned;
}

std::shared_ptr<const Planned> Program::make(const std::vector<Tensor>& inputs, const std::string& key,
                                             bool forget) const {
  using Clock = std::chrono::steady_clock;
  const auto nanoseconds = [](Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(to - from).count();
  };
  const auto begin = Clock::now();
  Graph known = specialise(graph_, inputs, values_);
  Ledger ledger;
  if (options_.rewrite) ledger = options_.rewrite(known);
  const auto rewritten = Clock::now();
  options_.clock->rewriting += nanoseconds(begin, rewritten);
  NotingWeights weights(*weights_, *model_constants_);
  auto planned = std::make_shared<Planned>();
  const auto plan =
      make_plan(std::move(known), weights, {options_.threads, options_.any_kernels, options_.progress});
  options_.clock->planning += nanoseconds(rewritten, Clock::now());
  plan->ledger = std::move(ledger);
  planned->bytes = bytes_of(*plan, *constants_, weights);
  if (forget && !plan->rest) forget_weights(plan->graph);
  if (plan->rest) planned->rest = std::shared_ptr<const Program>(new Program(*plan, *this, key));
  planned->plan = plan;
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
  Graph known = specialise(graph_, inputs, {});
  auto types = types_of(known);
  const bool all_known =
      std::all_of(types.begin(), types.end(), [](const TensorType& t) { return t.shape.known(); });
  if (all_known || !options_.rewrite) return types;
  options_.rewrite(known);  // where a shape is computed, folding may find it
  return types_of(known);
}

void Program::plan_ahead() {
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < graph_.inputs().size(); ++i) {
    const auto& type = graph_.type(graph_.inputs()[i]);
    if (!type.shape.known() || type.element == ElementType::undefined || values_[i]) return;
    inputs.push_back(shape_only(type.element, type.shape.sizes()));
  }
  const auto key = key_of(inputs);
  std::shared_ptr<const Planned> planned;
  tbb::task_arena arena(options_.threads);
  arena.execute(
      [&] { planned = own_cache_->get(key, {}, [&] { return make(inputs, key, !options_.keep_weights); }); });
  if (options_.keep_weights || planned->plan->rest) return;
  forget_weights(graph_);  // there will be no other plan
  weights_->forget_sources();
}

}  // namespace lamina
