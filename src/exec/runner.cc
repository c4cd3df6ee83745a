#include <tbb/task_arena.h>

#include <algorithm>
#include <optional>

#include "base/parallel.h"
#include "exec/bound.h"
#include "interpreter/interpreter.h"

namespace lamina {
namespace {
constexpr std::size_t kBoundPlans = 4;
}

/// The steady state (inputs of the same shapes as before) takes no lock and allocates nothing.
class Runner::State {
 public:
  explicit State(std::shared_ptr<const Program> program) : program_(std::move(program)) {
    const auto inputs = program_->graph().inputs().size();
    inputs_.resize(inputs);
    known_.resize(inputs);
    user_results_.resize(program_->graph().results().size());
    results_.resize(user_results_.size());
  }

  void run() {
    check_inputs();
    if (threads_here() == program_->threads()) return run_here();  // the caller's thread and arena
    if (!arena_) arena_.emplace(program_->threads());
    arena_->execute([&] { run_here(); });
  }

 private:
  friend class Runner;

  /// What is known of an input from earlier runs.
  struct Known {
    ElementType type = ElementType::undefined;
    Dims shape;
    Tensor values;  ///< where shapes depend on them
  };

  void check_inputs() {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      auto& known = known_[i];
      const auto& t = inputs_[i];
      if (!t.valid() || t.element_type() != known.type || t.shape() != known.shape) {
        check_input(program_->graph(), program_->graph().inputs()[i], t);
        known.type = t.element_type();
        known.shape = t.shape();
        current_ = nullptr;
      }
      if (program_->depends_on_values(i) && !(known.values.valid() && known.values.same_as(t))) {
        known.values = t.clone();
        current_ = nullptr;
      }
    }
  }

  /// Inside the arena already.
  void run_here() {
    if (!current_) choose_plan();
    Bound& bound = *current_;
    if (!outputs_fit_) check_outputs(*bound.plan());
    const bool other_results = bound.prepare(inputs_, user_results_, memory_);
    bound.run(profile_ ? &times_ : nullptr);
    if (other_results || bound.has_dynamic_results() || !taken_) take_results(bound);
    if (bound.plan()->rest)
      run_rest(bound);
    else if (rest_)
      rest_.reset(), rest_plan_.reset();
  }

  void take_results(const Bound& bound) {
    const auto& plan = *bound.plan();
    for (std::size_t r = 0; r < results_.size(); ++r) {
      const auto t = plan.results[r];
      if (t == kNoTensor) continue;
      const bool copied = plan.tensors[t].place == Place::dynamic && user_results_[r].valid();
      results_[r] = copied ? copied_to_user(r, bound.result(r)) : bound.result(r);
    }
    taken_ = true;
  }

  /// A result whose shape depended on data, in the caller's memory.
  Tensor copied_to_user(std::size_t r, const Tensor& result) {
    check_output(r, {result.element_type(), Shape::of(result.shape())});
    std::copy_n(result.raw(), result.bytes(), user_results_[r].raw());
    return user_results_[r];
  }

  void check_outputs(const Plan& plan) {
    for (std::size_t r = 0; r < user_results_.size(); ++r)
      if (const auto t = plan.results[r]; t != kNoTensor && plan.tensors[t].place != Place::dynamic)
        check_output(r, plan.tensors[t].type);
    outputs_fit_ = true;
  }

  /// The caller's memory, when there is any, is for exactly that.
  void check_output(std::size_t r, const TensorType& wanted) const {
    const auto& given = user_results_[r];
    if (!given.valid()) return;
    const TensorType found{given.element_type(), Shape::of(given.shape())};
    if (found != wanted || !given.aligned())
      fail(ErrorCode::bad_input, "output \"{}\": {}{} given, wanted {}", program_->graph().results()[r].name,
           to_string(found), given.aligned() ? "" : " at an address that does not suit its type",
           to_string(wanted));
  }

  void choose_plan() {
    const auto plan = program_->plan(inputs_);
    taken_ = outputs_fit_ = false;
    auto it = std::find_if(bound_.begin(), bound_.end(), [&](const Bound& b) { return b.plan() == plan; });
    if (it == bound_.end()) {
      if (bound_.size() >= kBoundPlans) bound_.pop_back();
      bound_.emplace_front(plan);
    } else {
      bound_.splice(bound_.begin(), bound_, it);
    }
    current_ = &bound_.front();
    times_.reserve(plan->steps.size());
    // One arena for all plans: it grows to the largest. Never empty: tensors without elements have an
    // address.
    const auto bytes = static_cast<std::int64_t>(std::max<std::size_t>(plan->memory.arena, 64));
    if (!memory_.valid() || static_cast<std::int64_t>(memory_.bytes()) < bytes) {
      memory_ = Tensor();  // first give back the old
      memory_ = Tensor(ElementType::u8, {bytes});
    }
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
      rest.user_results_[i] = user_results_[plan->rest_results[i]];
    rest.outputs_fit_ = false;
    rest.check_inputs();
    rest.run_here();
    for (std::size_t i = 0; i < plan->rest_results.size(); ++i)
      results_[plan->rest_results[i]] = rest.results_[i];
  }

  std::shared_ptr<const Program> program_;
  std::optional<tbb::task_arena> arena_;
  std::vector<Tensor> inputs_, user_results_, results_;
  std::vector<Known> known_;
  std::list<Bound> bound_;  // most recently used first
  Bound* current_ = nullptr;
  bool taken_ = false;        // results_ are those of current_
  bool outputs_fit_ = false;  // user_results_ are as current_ wants them
  Tensor memory_;
  std::unique_ptr<Runner> rest_;
  std::shared_ptr<const Plan> rest_plan_;
  bool profile_ = false;
  std::vector<StepTime> times_;
};

Runner::Runner(std::shared_ptr<const Program> program)
    : state_(std::make_unique<State>(std::move(program))) {}
Runner::~Runner() = default;
Runner::Runner(Runner&&) noexcept = default;
Runner& Runner::operator=(Runner&&) noexcept = default;

void Runner::set_input(std::size_t index, Tensor tensor) { state_->inputs_.at(index) = std::move(tensor); }
void Runner::set_output(std::size_t index, Tensor tensor) {
  state_->user_results_.at(index) = std::move(tensor);
  state_->outputs_fit_ = false;
}
const std::vector<Tensor>& Runner::inputs() const { return state_->inputs_; }
const std::vector<Tensor>& Runner::given_outputs() const { return state_->user_results_; }
void Runner::run() { state_->run(); }
const Tensor& Runner::output(std::size_t index) const { return state_->results_.at(index); }
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
    sum += s->memory_.valid() ? s->memory_.bytes() : 0;
  return sum;
}

std::vector<StepTime> Runner::times() const {
  std::vector<StepTime> out;
  for (const State* s = state_.get(); s; s = s->rest_ ? s->rest_->state_.get() : nullptr)
    out.insert(out.end(), s->times_.begin(), s->times_.end());
  return out;
}

}  // namespace lamina
