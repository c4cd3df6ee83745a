#include <tbb/task_arena.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <optional>

#include "base/parallel.h"
#include "base/shape_only.h"
#include "exec/bound.h"

namespace lamina {
namespace {
constexpr std::size_t kBoundPlans = 4;

/// Initial values of inputs that stand for their shapes only.
std::vector<Tensor> computed_shapes(const Program& program, const std::vector<Tensor>& inputs) {
  const Graph known = specialise(program.initial_values()->graph(), inputs, {});
  std::vector<Tensor> out;
  for (const auto& r : known.results()) {
    const auto& type = known.type(r.value);
    if (!type.shape.known())
      fail(ErrorCode::bad_input, "variable \"{}\": the shape of its initial value is known at run time only",
           r.name);
    out.push_back(shape_only(type.element, type.shape.sizes()));
  }
  return out;
}

/// Initial values of variables that are no constants.
std::vector<Tensor> computed_values(const std::shared_ptr<const Program>& program,
                                    const std::vector<Tensor>& inputs) {
  if (std::any_of(inputs.begin(), inputs.end(), [](const Tensor& t) { return !t.raw() && t.bytes() != 0; }))
    return computed_shapes(*program, inputs);
  Runner runner(program->initial_values());
  for (std::size_t i = 0; i < inputs.size(); ++i) runner.set_input(i, inputs[i]);
  runner.run();
  std::vector<Tensor> out;
  for (const auto& v : program->variables()) {
    if (v.initial.valid()) continue;
    out.push_back(runner.output(v.computed).clone());
    check_variable(v, out.back());
  }
  return out;
}

}  // namespace

std::vector<Tensor> with_variables(const std::shared_ptr<const Program>& program, std::vector<Tensor> inputs,
                                   const VariableValues& kept) {
  std::vector<Tensor> computed;
  if (program->initial_values()) computed = computed_values(program, inputs);
  for (const auto& v : program->variables())
    if (const auto it = kept.find(v.name); it != kept.end())
      inputs.push_back(it->second);
    else
      inputs.push_back(v.initial.valid() ? v.initial : computed[v.computed]);
  return inputs;
}

/// The steady state (inputs of the same shapes as before) takes no lock and allocates nothing.
class Runner::State {
 public:
  /// `outermost`: that of the request, where this runs a waiting part.
  explicit State(std::shared_ptr<const Program> program, const State* outermost = nullptr)
      : program_(std::move(program)), outermost_(outermost ? *outermost : *this) {
    const auto inputs = program_->graph().inputs().size();
    inputs_.resize(inputs);
    known_.resize(inputs);
    user_results_.resize(program_->graph().results().size());
    results_.resize(user_results_.size());
    kept_.resize(program_->variables().size());
    fresh_.resize(kept_.size());
  }

  void run() {
    try {
      check_inputs(0, program_->model_inputs());
      if (threads_here() == program_->threads()) return run_whole();  // the caller's thread and arena
      if (!arena_) arena_.emplace(program_->threads());
      arena_->execute([&] { run_whole(); });
    } catch (...) {
      forget();
      throw;
    }
  }

 private:
  friend class Runner;

  /// Of the waiting part of the last plan, or null.
  const State* rest() const { return uses_.empty() ? nullptr : uses_.front().rest.get(); }

  std::size_t arena_bytes() const {
    std::size_t sum = memory_.valid() ? memory_.bytes() : 0;
    for (const auto& use : uses_)
      if (use.rest) sum += use.rest->arena_bytes();
    return sum;
  }

  /// What is known of an input from earlier runs.
  struct Known {
    ElementType type = ElementType::undefined;
    Dims shape;
    Tensor values;  ///< where shapes depend on them
  };

  /// A plan bound to memory, and what runs its waiting part.
  struct Use {
    Use(std::string at, std::shared_ptr<const Planned> of, const State& outermost)
        : key(std::move(at)), planned(std::move(of)), bound(planned->plan) {
      if (planned->rest) rest = std::make_unique<State>(planned->rest, &outermost);
    }
    std::string key;
    std::shared_ptr<const Planned> planned;
    Bound bound;
    std::unique_ptr<State> rest;
  };

  /// After a run that failed, wherever that was: what was bound may be half of the old and half of the new.
  void forget() noexcept {
    current_ = nullptr;
    uses_.clear();
    times_.clear();
    for (auto& r : results_) r = Tensor();
    for (auto& f : fresh_) f = Tensor();
  }

  void check_inputs(std::size_t begin, std::size_t end) {
    for (auto i = begin; i < end; ++i) {
      auto& known = known_[i];
      const auto& t = inputs_[i];
      if (!t.valid() || t.element_type() != known.type || t.shape() != known.shape) {
        check_input(program_->graph(), program_->graph().inputs()[i], t);
        current_ = nullptr;
        known.type = t.element_type();
        known.shape = t.shape();
      }
      if (program_->depends_on_values(i) && !(known.values.valid() && known.values.same_as(t))) {
        current_ = nullptr;
        known.values = t.clone();
      }
    }
  }

  /// Inside the arena already.
  void run_whole() {
    if (kept_.empty()) return run_here();
    begin_variables();
    check_inputs(program_->model_inputs(), inputs_.size());
    run_here();
    keep_variables();
  }

  void run_here() {
    if (!current_) choose_plan();
    Bound& bound = current_->bound;
    if (!outputs_fit_) check_outputs(*bound.plan());
    const bool other_results =
        bound.prepare(inputs_, user_results_, memory_, {outermost_.inputs_, outermost_.user_results_});
    bound.run(profile_ ? &times_ : nullptr);
    if (other_results || bound.has_dynamic_results() || !taken_) take_results(bound);
    if (current_->rest) run_rest(*current_);
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
    taken_ = outputs_fit_ = false;
    auto key = program_->key_of(inputs_);
    const auto it = std::find_if(uses_.begin(), uses_.end(), [&](const Use& use) { return use.key == key; });
    if (it == uses_.end()) {
      auto planned = program_->plan(inputs_, key);
      uses_.emplace_front(std::move(key), std::move(planned), outermost_);
      if (uses_.size() > kBoundPlans) uses_.pop_back();
    } else {
      uses_.splice(uses_.begin(), uses_, it);
    }
    const auto& plan = *uses_.front().planned->plan;
    times_.reserve(plan.steps.size());
    // One arena for all plans: it grows to the largest. Never empty: tensors without elements have an
    // address.
    const auto bytes = static_cast<std::int64_t>(std::max<std::size_t>(plan.memory.arena, 64));
    if (!memory_.valid() || static_cast<std::int64_t>(memory_.bytes()) < bytes) {
      memory_ = Tensor();  // first give back the old
      memory_ = Tensor(ElementType::u8, {bytes});
    }
    current_ = &uses_.front();
  }

  void run_rest(Use& use) {
    const auto& plan = *use.planned->plan;
    auto& rest = *use.rest;
    rest.profile_ = profile_;
    for (std::size_t i = 0; i < plan.rest_inputs.size(); ++i)
      rest.inputs_[i] = use.bound.tensor(plan.rest_inputs[i]);
    for (std::size_t i = 0; i < plan.rest_results.size(); ++i)
      rest.user_results_[i] = user_results_[plan.rest_results[i]];
    rest.outputs_fit_ = false;
    rest.check_inputs(0, rest.inputs_.size());
    rest.run_here();
    for (std::size_t i = 0; i < plan.rest_results.size(); ++i)
      results_[plan.rest_results[i]] = rest.results_[i];
  }

  /// The last inputs are the variables' values: what earlier runs have left, else the initial ones.
  void begin_variables() {
    const auto& variables = program_->variables();
    const auto first = program_->model_inputs();
    std::vector<Tensor> computed;
    for (std::size_t i = 0; i < variables.size(); ++i) {
      const bool known = kept_[i].valid() || variables[i].initial.valid();
      if (!known && computed.empty())
        computed = computed_values(program_, {inputs_.begin(), inputs_.begin() + std::ptrdiff_t(first)});
      inputs_[first + i] = kept_[i].valid() ? kept_[i]
                           : known          ? variables[i].initial
                                            : computed[variables[i].computed];
    }
  }

  /// All or none: only when nothing more can fail, values are replaced.
  void keep_variables() {
    const auto& variables = program_->variables();
    for (std::size_t i = 0; i < variables.size(); ++i) {
      if (!variables[i].result) continue;
      const auto& value = results_[*variables[i].result];
      const auto& kept = kept_[i];
      if (kept.valid() && kept.element_type() == value.element_type() && kept.shape() == value.shape())
        continue;
      check_variable(variables[i], value);
      fresh_[i] = value.clone();
    }
    for (std::size_t i = 0; i < variables.size(); ++i) {
      if (!variables[i].result) continue;
      const auto& value = results_[*variables[i].result];
      if (fresh_[i].valid())
        kept_[i] = std::exchange(fresh_[i], Tensor());
      else if (value.bytes() != 0)
        std::memcpy(kept_[i].raw(), value.raw(), value.bytes());
    }
  }

  std::shared_ptr<const Program> program_;
  const State& outermost_;
  std::optional<tbb::task_arena> arena_;
  std::vector<Tensor> inputs_, user_results_, results_;
  std::vector<Known> known_;
  std::vector<Tensor> kept_;   // of variables, memory of their own; invalid: the initial value
  std::vector<Tensor> fresh_;  // what replaces them
  std::list<Use> uses_;        // most recently used first
  Use* current_ = nullptr;
  bool taken_ = false;        // results_ are those of current_
  bool outputs_fit_ = false;  // user_results_ are as current_ wants them
  Tensor memory_;
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

Tensor Runner::variable(std::size_t index) const {
  const auto& kept = state_->kept_.at(index);
  return (kept.valid() ? kept : state_->program_->variables()[index].initial).clone();
}

void Runner::set_variable(std::size_t index, const Tensor& value) {
  check_variable(state_->program_->variables().at(index), value);
  state_->kept_.at(index) = value.clone();
}

void Runner::reset_variables() {
  for (auto& kept : state_->kept_) kept = Tensor();
}

void Runner::run() { state_->run(); }
const Tensor& Runner::output(std::size_t index) const { return state_->results_.at(index); }
void Runner::profile(bool on) { state_->profile_ = on; }

std::vector<std::shared_ptr<const Plan>> Runner::plans() const {
  std::vector<std::shared_ptr<const Plan>> out;
  for (const State* s = state_.get(); s && !s->uses_.empty(); s = s->rest())
    out.push_back(s->uses_.front().planned->plan);
  return out;
}

std::size_t Runner::arena_bytes() const { return state_->arena_bytes(); }

std::vector<StepTime> Runner::times() const {
  std::vector<StepTime> out;
  for (const State* s = state_.get(); s; s = s->rest())
    out.insert(out.end(), s->times_.begin(), s->times_.end());
  return out;
}

}  // namespace lamina
