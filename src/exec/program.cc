#include "exec/program.h"

#include <tbb/task_arena.h>

#include <chrono>
#include <cstring>

#include "base/shape_only.h"

namespace lamina {

Program::Program(Graph graph, ProgramOptions options, std::shared_ptr<ModelWeights> weights,
                 std::vector<bool> values)
    : graph_(std::move(graph)),
      options_(std::move(options)),
      weights_(std::move(weights)),
      values_(std::move(values)) {
  values_.resize(graph_.inputs().size(), false);
  if (!options_.clock) options_.clock = std::make_shared<PlanClock>();
}

namespace {

/// About what a plan takes beside shared weights: graph, steps with their generated code, constants of its
/// own.
std::size_t bytes_of(const Plan& plan) {
  constexpr std::size_t kNode = 1024, kStep = 8192;
  std::size_t bytes = plan.graph.node_slots() * kNode + plan.steps.size() * kStep;
  for (const auto& t : plan.tensors)
    if (t.place == Place::constant) bytes += t.constant.bytes();
  return bytes;
}

}  // namespace

std::string Program::key_of(const std::vector<Tensor>& inputs) const {
  std::string key;
  const auto append = [&](const void* data, std::size_t bytes) {
    key.append(static_cast<const char*>(data), bytes);
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto& t = inputs[i];
    const auto rank = t.rank();
    append(&rank, sizeof(rank));
    append(t.shape().data(), rank * sizeof(std::int64_t));
    if (values_[i]) append(t.raw(), t.bytes());
  }
  return key;
}

std::shared_ptr<const Plan> Program::plan(const std::vector<Tensor>& inputs) const {
  const auto key = key_of(inputs);
  {
    std::lock_guard lock(mutex_);
    for (auto it = cache_.begin(); it != cache_.end(); ++it)
      if (it->key == key) {
        cache_.splice(cache_.begin(), cache_, it);
        return cache_.front().plan;
      }
  }
  std::shared_ptr<const Plan> plan = make(inputs);
  keep({key, plan, rest_of(*plan), bytes_of(*plan)});
  return plan;
}

std::shared_ptr<Plan> Program::make(const std::vector<Tensor>& inputs) const {
  using Clock = std::chrono::steady_clock;
  const auto nanoseconds = [](Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(to - from).count();
  };
  const auto begin = Clock::now();
  Graph known = specialise(graph_, inputs, values_);
  if (options_.rewrite) options_.rewrite(known);
  const auto rewritten = Clock::now();
  options_.clock->rewriting += nanoseconds(begin, rewritten);
  auto plan =
      make_plan(std::move(known), *weights_, {options_.threads, options_.any_kernels, options_.progress});
  options_.clock->planning += nanoseconds(rewritten, Clock::now());
  return plan;
}

std::shared_ptr<const Program> Program::rest_of(const Plan& plan) const {
  if (!plan.rest) return nullptr;
  return std::make_shared<Program>(*plan.rest, options_, weights_, plan.rest_values);
}

void Program::keep(Cached cached) const {
  std::lock_guard lock(mutex_);
  cache_.push_front(std::move(cached));
  std::size_t bytes = 0, count = 0;
  for (auto it = cache_.begin(); it != cache_.end(); ++it) {
    bytes += it->bytes;
    if (count != 0 && (count >= options_.cached_plans || bytes > options_.cached_bytes)) {
      cache_.erase(it, cache_.end());
      break;
    }
    ++count;
  }
}

void Program::plan_ahead() {
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < graph_.inputs().size(); ++i) {
    const auto& type = graph_.type(graph_.inputs()[i]);
    if (!type.shape.known() || type.element == ElementType::undefined || values_[i]) return;
    inputs.push_back(shape_only(type.element, type.shape.sizes()));
  }
  std::shared_ptr<Plan> plan;
  tbb::task_arena arena(options_.threads);
  arena.execute([&] { plan = make(inputs); });
  if (!options_.keep_weights && !plan->rest) {  // there will be no other plan
    forget_weights(plan->graph);
    forget_weights(graph_);
    weights_->forget_sources();
  }
  keep({key_of(inputs), plan, rest_of(*plan), bytes_of(*plan)});
}

std::shared_ptr<const Program> Program::rest(const std::shared_ptr<const Plan>& plan) const {
  std::lock_guard lock(mutex_);
  for (const auto& c : cache_)
    if (c.plan == plan) return c.rest;
  return rest_of(*plan);  // it was pushed out meanwhile
}

}  // namespace lamina
