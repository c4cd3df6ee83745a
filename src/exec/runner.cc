#include <tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>

#include "exec/program.h"
#include "interpreter/interpreter.h"

namespace lamina {
namespace {

using Clock = std::chrono::steady_clock;

/// A plan bound to memory.
class Bound {
 public:
  explicit Bound(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {
    // Never empty: tensors without elements have an address, too.
    arena_ =
        Tensor(ElementType::u8, {static_cast<std::int64_t>(std::max<std::size_t>(plan_->memory.arena, 64))});
    for (const auto& step : plan_->steps) steps_.push_back(step.code ? step.code->step() : nullptr);
    pointers_.resize(plan_->tensors.size(), nullptr);
    dynamic_.resize(plan_->tensors.size());
    for (std::uint32_t t = 0; t < pointers_.size(); ++t) {
      const auto& tensor = plan_->tensors[t];
      if (tensor.root != t) continue;
      if (tensor.place == Place::arena) pointers_[t] = arena_.raw() + tensor.offset;
      if (tensor.place == Place::constant) pointers_[t] = const_cast<std::byte*>(tensor.constant.raw());
    }
    results_.resize(plan_->results.size());
    for (std::size_t r = 0; r < results_.size(); ++r)
      if (const auto t = plan_->results[r]; t != kNoTensor && plan_->tensors[t].place != Place::dynamic)
        own_results_.push_back(Tensor(plan_->tensors[t].type.element, plan_->tensors[t].type.shape.sizes()));
      else
        own_results_.emplace_back();
    inputs_.resize(plan_->inputs.size());
  }

  const std::shared_ptr<const Plan>& plan() const { return plan_; }

  /// Binds steps anew only when a user pointer changed.
  void prepare(const std::vector<Tensor>& inputs, const std::vector<Tensor>& user_results) {
    bool changed = first_;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (plan_->inputs[i] == kNoTensor) continue;
      inputs_[i] = inputs[i].to_aligned();
      changed |= point(plan_->inputs[i], inputs_[i].raw());
    }
    for (std::size_t r = 0; r < results_.size(); ++r) {
      const auto t = plan_->results[r];
      if (t == kNoTensor || plan_->tensors[t].place == Place::dynamic) continue;
      const bool fits = user_results[r].valid() &&
                        user_results[r].element_type() == own_results_[r].element_type() &&
                        user_results[r].shape() == own_results_[r].shape() && user_results[r].aligned();
      results_[r] = fits ? user_results[r] : own_results_[r];
      changed |= point(plan_->tensors[t].root, results_[r].raw());
    }
    if (changed) bind();
    first_ = false;
  }

  void run(bool timed) {
    times_.clear();
    auto before = timed ? Clock::now() : Clock::time_point();
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      if (steps_[s])
        steps_[s]->run();
      else
        run_dynamic(plan_->steps[s]);
      if (!timed) continue;
      const auto now = Clock::now();
      times_.push_back({&plan_->steps[s], std::chrono::duration<double, std::micro>(now - before).count()});
      before = now;
    }
  }

  /// A tensor of the plan as the caller sees it.
  Tensor tensor(std::uint32_t t) const {
    const auto& tensor = plan_->tensors[t];
    if (tensor.place == Place::dynamic) return dynamic_[t];
    return Tensor::wrap(tensor.type.element, tensor.type.shape.sizes(), pointers_[tensor.root]);
  }
  Tensor result(std::size_t r) const {
    const auto t = plan_->results[r];
    return plan_->tensors[t].place == Place::dynamic ? dynamic_[t] : results_[r];
  }
  const std::vector<StepTime>& times() const { return times_; }

 private:
  bool point(std::uint32_t t, const std::byte* to) {
    auto& p = pointers_[plan_->tensors[t].root];
    const bool changed = p != to;
    p = const_cast<std::byte*>(to);
    return changed;
  }

  void bind() {
    std::vector<const void*> in;
    std::vector<void*> out;
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      if (!steps_[s]) continue;
      const auto& step = plan_->steps[s];
      in.clear();
      out.clear();
      for (auto t : step.in) in.push_back(t == kNoTensor ? nullptr : pointers_[plan_->tensors[t].root]);
      for (auto t : step.out) out.push_back(t == kNoTensor ? nullptr : pointers_[plan_->tensors[t].root]);
      auto& kept_in = bound_in_[s];
      auto& kept_out = bound_out_[s];
      kept_in = in;
      kept_out = out;
      steps_[s]->bind(
          {kept_in.data(), kept_out.data(), step.scratch ? arena_.raw() + plan_->scratch_offset : nullptr});
    }
  }

  void run_dynamic(const PlanStep& step) {
    std::vector<Tensor> in;
    for (auto t : step.in) in.push_back(t == kNoTensor ? Tensor() : tensor(t));
    auto out = interpret_node(plan_->graph.node(step.node), in);
    for (std::size_t i = 0; i < out.size(); ++i) dynamic_[step.out[i]] = std::move(out[i]);
  }

  std::shared_ptr<const Plan> plan_;
  Tensor arena_;
  std::vector<std::unique_ptr<Step>> steps_;
  std::vector<std::byte*> pointers_;  // by root tensor
  std::vector<Tensor> dynamic_;
  std::vector<Tensor> inputs_, results_, own_results_;
  std::map<std::size_t, std::vector<const void*>> bound_in_;
  std::map<std::size_t, std::vector<void*>> bound_out_;
  std::vector<StepTime> times_;
  bool first_ = true;
};

constexpr std::size_t kBoundPlans = 4;

}  // namespace

class Runner::State {
 public:
  explicit State(std::shared_ptr<const Program> program)
      : program_(std::move(program)), arena_(program_->threads()) {
    inputs_.resize(program_->graph().inputs().size());
    user_outputs_.resize(program_->graph().results().size());
    outputs_.resize(user_outputs_.size());
  }

  std::shared_ptr<const Program> program_;
  tbb::task_arena arena_;
  std::vector<Tensor> inputs_, user_outputs_, outputs_;
  std::list<Bound> bound_;  // most recently used first
  std::unique_ptr<Runner> rest_;
  std::shared_ptr<const Plan> rest_plan_;
  bool profile_ = false;

  void run() {
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      check_input(program_->graph(), program_->graph().inputs()[i], inputs_[i]);
    arena_.execute([&] { run_here(); });
  }

  /// Inside the arena already.
  void run_here() {
    Bound& bound = bind();
    bound.prepare(inputs_, user_outputs_);
    bound.run(profile_);
    for (std::size_t r = 0; r < outputs_.size(); ++r)
      if (bound.plan()->results[r] != kNoTensor) outputs_[r] = bound.result(r);
    if (bound.plan()->rest)
      run_rest(bound);
    else
      rest_.reset(), rest_plan_.reset();
  }

 private:
  Bound& bind() {
    const auto plan = program_->plan(inputs_);
    for (auto it = bound_.begin(); it != bound_.end(); ++it)
      if (it->plan() == plan) {
        bound_.splice(bound_.begin(), bound_, it);
        return bound_.front();
      }
    if (bound_.size() >= kBoundPlans) bound_.pop_back();
    bound_.emplace_front(plan);
    return bound_.front();
  }

  void run_rest(Bound& bound) {
    const auto& plan = bound.plan();
    if (rest_plan_ != plan) {
      rest_ = std::make_unique<Runner>(program_->rest(plan));
      rest_plan_ = plan;
    }
    auto& rest = *rest_->state_;
    rest.profile_ = profile_;
    for (std::size_t i = 0; i < plan->rest_inputs.size(); ++i)
      rest.inputs_[i] = bound.tensor(plan->rest_inputs[i]);
    for (std::size_t i = 0; i < plan->rest_results.size(); ++i)
      rest.user_outputs_[i] = user_outputs_[plan->rest_results[i]];
    rest.run_here();
    for (std::size_t i = 0; i < plan->rest_results.size(); ++i)
      outputs_[plan->rest_results[i]] = rest.outputs_[i];
  }
  friend class Runner;
};

Runner::Runner(std::shared_ptr<const Program> program)
    : state_(std::make_unique<State>(std::move(program))) {}
Runner::~Runner() = default;
Runner::Runner(Runner&&) noexcept = default;
Runner& Runner::operator=(Runner&&) noexcept = default;

void Runner::set_input(std::size_t index, Tensor tensor) { state_->inputs_.at(index) = std::move(tensor); }
void Runner::set_output(std::size_t index, Tensor tensor) {
  state_->user_outputs_.at(index) = std::move(tensor);
}
void Runner::run() { state_->run(); }
const Tensor& Runner::output(std::size_t index) const { return state_->outputs_.at(index); }
void Runner::profile(bool on) { state_->profile_ = on; }

std::vector<std::shared_ptr<const Plan>> Runner::plans() const {
  std::vector<std::shared_ptr<const Plan>> out;
  for (const State* s = state_.get(); s && !s->bound_.empty();
       s = s->rest_ ? s->rest_->state_.get() : nullptr)
    out.push_back(s->bound_.front().plan());
  return out;
}

std::size_t Runner::arena_bytes() const {
  std::size_t sum = 0;
  for (const State* s = state_.get(); s; s = s->rest_ ? s->rest_->state_.get() : nullptr)
    for (const auto& b : s->bound_) sum += b.plan()->memory.arena;
  return sum;
}

std::vector<StepTime> Runner::times() const {
  std::vector<StepTime> out;
  for (const State* s = state_.get(); s && !s->bound_.empty();
       s = s->rest_ ? s->rest_->state_.get() : nullptr) {
    const auto& t = s->bound_.front().times();
    out.insert(out.end(), t.begin(), t.end());
  }
  return out;
}

}  // namespace lamina
