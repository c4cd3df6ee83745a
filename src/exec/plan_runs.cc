#include "exec/plan_runs.h"

#include <algorithm>

namespace lamina {
namespace {
/// Number of plans that a request keeps, so that alternating shapes need no lookup.
constexpr std::size_t kPlans = 4;

Tensor named_result(const std::string& name, const TensorType& type) try {
  return {type.element, type.shape.sizes()};
} catch (const Error& e) {
  throw Error(e.code(), fmt::format("output \"{}\": {}", name, e.what()));
}
}  // namespace

/// Runs a deferred subgraph, whose input tensors exist during the run.
struct PlanRuns::Rest {
  Rest(const std::shared_ptr<const Program>& program, const CallersTensors& callers,
       const std::shared_ptr<StepCounts>& counts)
      : runs(program, callers, counts) {
    inputs.resize(program->graph().inputs().size());
    given.resize(program->graph().results().size());
  }
  void take(const Plan& plan, const Bound& bound, const std::vector<Tensor>& callers) {
    for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = bound.tensor(plan.rest_inputs[i]);
    for (std::size_t r = 0; r < given.size(); ++r) given[r] = callers[plan.rest_results[r]];
    runs.given_changed();
  }
  void let_go() noexcept {
    for (auto* list : {&inputs, &given})
      for (auto& t : *list) t = Tensor();
  }

  PlanRuns runs;
  std::vector<Tensor> inputs, given;
};

PlanRuns::Use::Use(std::string at, std::shared_ptr<const Planned> of, const CallersTensors& callers,
                   const std::shared_ptr<StepCounts>& counts)
    : key(std::move(at)), planned(std::move(of)), own_results(planned->plan->results.size()) {
  if (planned->rest) rest = std::make_unique<Rest>(planned->rest, callers, counts);
}
PlanRuns::Use::~Use() = default;

void PlanRuns::Use::forget() noexcept {
  times.forget();
  for (auto& r : own_results) r = Tensor();
  if (!rest) return;
  rest->let_go();
  rest->runs.forget();
}

PlanRuns::PlanRuns(std::shared_ptr<const Program> program, const CallersTensors& callers,
                   std::shared_ptr<StepCounts> counts)
    : program_(std::move(program)),
      callers_(callers),
      counts_(std::move(counts)),
      results_(program_->graph().results().size()) {}

void PlanRuns::forget() noexcept {
  current_ = nullptr;
  for (auto& use : uses_) use.forget();
  for (auto& r : results_) r = Tensor();
}

void PlanRuns::run(const std::vector<Tensor>& inputs, const std::vector<Tensor>& given,
                   const RunContext& context, std::size_t depth) {
  if (!known_.same(*program_, inputs)) current_ = nullptr;
  if (!current_) choose_plan(inputs);
  if (!given_fits_) check_given(given);
  run_plan(*current_, inputs, given, context, depth);
  if (depth > 0) return;
  if (context.timed) {
    counts_->begin_run();
    count_run();
  } else {
    forget_counts();
  }
}

void PlanRuns::forget_counts() noexcept {
  if (!counts_->any()) return;
  counts_->forget();
  for (auto& use : uses_) use.counted = false;
}

void PlanRuns::count_run() {
  counts_->add(current_->slots, current_->times);
  current_->counted = true;
  if (current_->rest) current_->rest->runs.count_run();
}

void PlanRuns::choose_plan(const std::vector<Tensor>& inputs) {
  given_fits_ = false;
  auto key = program_->key_of(inputs);
  const auto it = std::find_if(uses_.begin(), uses_.end(), [&](const Use& use) { return use.key == key; });
  if (it == uses_.end()) {
    auto planned = program_->plan(inputs, key);
    uses_.emplace_front(std::move(key), std::move(planned), callers_, counts_);
    if (uses_.size() > kPlans) uses_.pop_back();
  } else {
    uses_.splice(uses_.begin(), uses_, it);
  }
  current_ = &uses_.front();
}

void PlanRuns::check_given(const std::vector<Tensor>& given) {
  const auto& plan = *current_->planned->plan;
  for (std::size_t r = 0; r < given.size(); ++r)
    if (const auto t = plan.results[r]; t != kNoTensor)
      check_result_memory(*program_, r, given[r], plan.tensors[t].type);
  given_fits_ = true;
}

/// Runs the steps of a plan, then its deferred subgraph, which reads their results. After an exception the
/// bound steps are not used again.
void PlanRuns::run_plan(Use& use, const std::vector<Tensor>& inputs, const std::vector<Tensor>& given,
                        const RunContext& context, std::size_t depth) {
  auto& stream = context.stream;
  const auto& plan = *use.planned->plan;
  auto& bound = stream.bound(depth).of(use.planned, program_->cached_plans());
  try {
    point(bound, inputs, given, stream.memory(depth, plan.memory.arena));
    bound.bind();
    if (context.timed) {
      run_timed(use, bound, context, depth);
    } else {
      use.times.forget();
      run_steps(bound, stream);
    }
    take_results(plan, given);
    if (use.rest) {
      use.rest->take(plan, bound, given);
      run_rest(*use.rest, plan, context, depth);
    }
    bound.end_run();
  } catch (...) {
    stream.bound(depth).drop(bound);
    throw;
  }
}

void PlanRuns::run_timed(Use& use, Bound& bound, const RunContext& context, std::size_t depth) {
  if (use.slots.empty()) use.slots = counts_->slots_of(*use.planned->plan, depth);
  use.times.run(bound, context.stream);
}

/// The request's own memory is never where the caller's tensors lie, so that a result can be an input of the
/// next run.
void PlanRuns::point(Bound& bound, const std::vector<Tensor>& inputs, const std::vector<Tensor>& given,
                     const Tensor& arena) {
  const auto& plan = *bound.plan();
  bound.point_arena(arena.raw());
  for (std::size_t i = 0; i < inputs.size(); ++i) bound.point_input(i, inputs[i]);
  for (std::size_t r = 0; r < given.size(); ++r) {
    auto& own = current_->own_results[r];
    if (own.valid() && callers_.overlap(own)) own = Tensor();  // whoever has the tensor keeps it
    if (plan.results[r] == kNoTensor) continue;
    if (!given[r].valid() && !own.valid()) {
      const auto& type = plan.tensors[plan.results[r]].type;
      own = named_result(plan.graph.results()[r].name, type);
    }
    bound.point_result(r, given[r].valid() ? given[r] : own);
  }
}

void PlanRuns::take_results(const Plan& plan, const std::vector<Tensor>& given) {
  for (std::size_t r = 0; r < results_.size(); ++r)
    if (plan.results[r] != kNoTensor)  // where the last one lay, but it may own its memory
      results_[r] = given[r].valid() ? given[r] : current_->own_results[r];
}

Tensor PlanRuns::take(std::size_t r) {
  Tensor taken = std::move(results_.at(r));
  if (!current_) return taken;
  current_->own_results[r] = Tensor();
  if (!current_->rest) return taken;
  const auto& deferred = current_->planned->plan->rest_results;
  for (std::size_t i = 0; i < deferred.size(); ++i)
    if (deferred[i] == r) current_->rest->runs.take(i);
  return taken;
}

void PlanRuns::run_rest(Rest& rest, const Plan& plan, const RunContext& context, std::size_t depth) {
  rest.runs.run(rest.inputs, rest.given, context, depth + 1);
  for (std::size_t i = 0; i < plan.rest_results.size(); ++i)
    results_[plan.rest_results[i]] = rest.runs.results()[i];
  rest.let_go();
}

void PlanRuns::add_plans(std::vector<std::shared_ptr<const Plan>>& out) const {
  if (uses_.empty()) return;
  out.push_back(uses_.front().planned->plan);
  if (uses_.front().rest) uses_.front().rest->runs.add_plans(out);
}

std::vector<PlanChain> PlanRuns::counted_plans() const {
  std::vector<PlanChain> out;
  for (const auto& use : uses_) {
    if (!use.counted) continue;
    out.push_back({use.planned->plan});
    if (!use.rest) continue;
    if (const auto rest = use.rest->runs.counted_plans(); !rest.empty())
      out.back().insert(out.back().end(), rest[0].begin(), rest[0].end());
  }
  return out;
}

void PlanRuns::add_times(std::vector<StepTime>& out) const {
  if (uses_.empty()) return;
  const auto last = uses_.front().times.last();
  out.insert(out.end(), last.begin(), last.end());
  if (uses_.front().rest) uses_.front().rest->runs.add_times(out);
}

void PlanRuns::add_counts(std::vector<StepCount>& out) const { out = counts_->all(); }

std::size_t PlanRuns::arena_bytes() const {
  if (uses_.empty()) return 0;
  const auto& use = uses_.front();
  return use.planned->plan->memory.arena + (use.rest ? use.rest->runs.arena_bytes() : 0);
}

}  // namespace lamina
