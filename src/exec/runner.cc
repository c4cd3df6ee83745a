#include "exec/runner.h"

#include <algorithm>
#include <list>

#include "exec/variable_memory.h"

namespace lamina {
namespace {
constexpr std::size_t kBoundPlans = 4;
}  // namespace

/// The steady state (inputs of the same shapes as before) takes no lock and allocates nothing.
class Runner::State {
 public:
  /// `outermost`: that of the request, where this runs a waiting part.
  explicit State(std::shared_ptr<const Program> program, const State* outermost = nullptr)
      : variables(program), program_(std::move(program)), outermost_(outermost ? *outermost : *this) {
    inputs_.resize(program_->graph().inputs().size());
    known_.resize(inputs_.size());
    user_results_.resize(program_->graph().results().size());
    results_.resize(user_results_.size());
  }

  int threads() const { return program_->threads(); }

  void set_input(std::size_t index, Tensor tensor) {
    if (tensor.valid()) check_input(program_->graph(), program_->graph().inputs().at(index), tensor);
    inputs_.at(index) = std::move(tensor);
    outputs_fit_ = false;
  }

  void set_output(std::size_t index, Tensor tensor) {
    if (tensor.valid()) check_memory(index, tensor);
    user_results_.at(index) = std::move(tensor);
    outputs_fit_ = false;
  }

  void check() {
    const auto& machine = program_->machine();
    if (!machine.here)
      fail(ErrorCode::unsupported, "planned for another machine (\"{}\"): it runs there", machine.name);
    for (std::size_t i = 0; i < program_->model_inputs(); ++i)
      if (!inputs_[i].valid()) check_input(program_->graph(), program_->graph().inputs()[i], inputs_[i]);
    if (!outputs_fit_) check_overlaps();
  }

  void run(Stream& stream, const Checkpoint& checkpoint) {
    try {
      check();
      stream.execute([&] {
        checkpoint();
        run_whole(stream, checkpoint);
      });
    } catch (...) {
      forget();
      throw;
    }
  }

  const std::vector<Tensor>& inputs() const { return inputs_; }
  const Tensor& result(std::size_t index) const { return results_.at(index); }

  /// Null before the first run, and after one that failed.
  std::shared_ptr<const Plan> plan() const { return uses_.empty() ? nullptr : uses_.front().planned->plan; }
  /// Of the waiting part of the last plan, or null.
  const State* rest() const { return uses_.empty() ? nullptr : uses_.front().rest.get(); }

  std::size_t arena_bytes() const {
    if (uses_.empty()) return 0;
    const auto& use = uses_.front();
    return use.planned->plan->memory.arena + (use.rest ? use.rest->arena_bytes() : 0);
  }

  void add_counts(std::vector<StepCount>& out) const {
    if (uses_.empty()) return;
    out.insert(out.end(), uses_.front().counts.begin(), uses_.front().counts.end());
    if (uses_.front().rest) uses_.front().rest->add_counts(out);
  }

  /// After a run that failed, wherever that was: what was bound may be half of the old and half of the new.
  void forget() noexcept {
    current_ = nullptr;
    uses_.clear();
    times.clear();
    for (auto& r : results_) r = Tensor();
  }

  VariableMemory variables;
  bool profile = false;
  std::vector<StepTime> times;

 private:
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
    std::vector<StepCount> counts;  // of runs that were timed
  };

  /// What is known of memory for a result before a run.
  void check_memory(std::size_t r, const Tensor& memory) const {
    const auto& result = program_->graph().results().at(r);
    const auto& type = program_->graph().type(result.value);
    require_fit("output", result.name, memory, type);
    if (memory.read_only() || !memory.aligned())
      fail(ErrorCode::bad_input, "output \"{}\": {}{} {}, wanted {}", result.name,
           name_of(memory.element_type()), to_string(memory.shape()),
           memory.read_only() ? "in memory that is only to be read"
                              : "at an address that does not suit its type",
           to_string(type));
  }

  void check_overlaps() const {
    const auto& graph = program_->graph();
    for (std::size_t r = 0; r < user_results_.size(); ++r) {
      const auto refuse = [&](const char* what, const std::string& name) {
        fail(ErrorCode::bad_input, "output \"{}\" overlaps {} \"{}\", wanted memory of its own",
             graph.results()[r].name, what, name);
      };
      for (std::size_t i = 0; i < program_->model_inputs(); ++i)
        if (overlap(user_results_[r], inputs_[i])) refuse("input", graph.value(graph.inputs()[i]).name);
      for (std::size_t other = 0; other < r; ++other)
        if (overlap(user_results_[r], user_results_[other])) refuse("output", graph.results()[other].name);
    }
  }

  /// Inside the arena already.
  void run_whole(Stream& stream, const Checkpoint& checkpoint) {
    if (variables.empty()) return run_here(stream, 0, checkpoint);
    variables.begin(inputs_);
    run_here(stream, 0, checkpoint);
    variables.keep(results_);
  }

  /// `depth`: of how many plans this is a waiting part.
  void run_here(Stream& stream, std::size_t depth, const Checkpoint& checkpoint) {
    if (!inputs_are_as_known()) current_ = nullptr;
    if (!current_) choose_plan();
    if (!outputs_fit_) check_outputs(*current_->planned->plan);
    auto& bound = current_->bound;
    const auto& memory = stream.memory(depth, current_->planned->plan->memory.arena);
    bound.prepare(inputs_, user_results_, memory, {outermost_.inputs_, outermost_.user_results_});
    bound.run(profile ? &times : nullptr, checkpoint);
    if (profile) count(*current_);
    take_results(bound);
    if (current_->rest) run_rest(*current_, stream, depth, checkpoint);
  }

  void count(Use& use) {
    if (use.counts.empty())
      for (const auto& t : times) use.counts.push_back({t.step});
    for (std::size_t s = 0; s < times.size(); ++s) {
      auto& c = use.counts[s];
      const double us = times[s].microseconds;
      c.last = us;
      c.sum += us;
      c.least = c.runs == 0 ? us : std::min(c.least, us);
      c.cpu += times[s].cpu_microseconds;
      ++c.runs;
      ++c.branches[static_cast<std::size_t>(times[s].branch)];
    }
  }

  bool inputs_are_as_known() {
    bool same = true;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      auto& known = known_[i];
      const auto& t = inputs_[i];
      if (t.element_type() != known.type || t.shape() != known.shape) {
        same = false;
        known.type = t.element_type();
        known.shape = t.shape();
      }
      if (program_->depends_on_values(i) && !(known.values.valid() && known.values.same_as(t))) {
        same = false;
        known.values = t.clone();
      }
    }
    return same;
  }

  void choose_plan() {
    outputs_fit_ = false;
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
    times.reserve(plan.steps.size());
    current_ = &uses_.front();
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
    if (given.valid() && !fits(wanted, given))
      fail(ErrorCode::bad_input, "output \"{}\": {}{} given, wanted {}", program_->graph().results()[r].name,
           name_of(given.element_type()), to_string(given.shape()), to_string(wanted));
  }

  void take_results(const Bound& bound) {
    const auto& plan = *bound.plan();
    for (std::size_t r = 0; r < results_.size(); ++r) {
      const auto t = plan.results[r];
      if (t == kNoTensor) continue;
      const auto& result = bound.result(r);
      if (plan.tensors[t].place == Place::dynamic && user_results_[r].valid())
        results_[r] = copied_to_user(r, result);
      else
        results_[r] = result;
    }
  }

  /// A result whose shape depended on data, in the caller's memory.
  Tensor copied_to_user(std::size_t r, const Tensor& result) {
    check_output(r, {result.element_type(), Shape::of(result.shape())});
    std::copy_n(result.raw(), result.bytes(), user_results_[r].raw());
    return user_results_[r];
  }

  void run_rest(Use& use, Stream& stream, std::size_t depth, const Checkpoint& checkpoint) {
    const auto& plan = *use.planned->plan;
    auto& rest = *use.rest;
    rest.profile = profile;
    for (std::size_t i = 0; i < plan.rest_inputs.size(); ++i)
      rest.inputs_[i] = use.bound.tensor(plan.rest_inputs[i]);
    for (std::size_t i = 0; i < plan.rest_results.size(); ++i)
      rest.user_results_[i] = user_results_[plan.rest_results[i]];
    rest.outputs_fit_ = false;
    rest.run_here(stream, depth + 1, checkpoint);
    for (std::size_t i = 0; i < plan.rest_results.size(); ++i)
      results_[plan.rest_results[i]] = rest.results_[i];
  }

  std::shared_ptr<const Program> program_;
  const State& outermost_;
  std::vector<Tensor> inputs_, user_results_, results_;
  std::vector<Known> known_;
  std::list<Use> uses_;       // most recently used first
  Use* current_ = nullptr;    // what the known inputs want
  bool outputs_fit_ = false;  // user_results_ are as current_ wants them, and apart from what else was set
};

Runner::Runner(std::shared_ptr<const Program> program)
    : state_(std::make_unique<State>(std::move(program))) {}
Runner::~Runner() = default;
Runner::Runner(Runner&&) noexcept = default;
Runner& Runner::operator=(Runner&&) noexcept = default;

void Runner::set_input(std::size_t index, Tensor tensor) { state_->set_input(index, std::move(tensor)); }
void Runner::set_output(std::size_t index, Tensor tensor) { state_->set_output(index, std::move(tensor)); }
const std::vector<Tensor>& Runner::inputs() const { return state_->inputs(); }
Tensor Runner::variable(std::size_t index) const { return state_->variables.get(index); }
void Runner::set_variable(std::size_t index, const Tensor& value) { state_->variables.set(index, value); }
void Runner::reset_variables() { state_->variables.reset(); }

void Runner::run(Stream& stream, const Job* job) {
  if (job == nullptr) return state_->run(stream, [&] { stream.checkpoint(); });
  state_->run(stream, [&stream, job] {
    stream.checkpoint();
    if (job->stopping()) std::rethrow_exception(canceled_error());
  });
}

Stream& Runner::own_stream() {
  if (!stream_) stream_ = std::make_unique<Stream>(StreamPlace{}, state_->threads(), Binding::none);
  return *stream_;
}

void Runner::check() const { state_->check(); }
void Runner::forget() noexcept { state_->forget(); }

const Tensor& Runner::output(std::size_t index) const { return state_->result(index); }
void Runner::profile(bool on) { state_->profile = on; }

std::vector<std::shared_ptr<const Plan>> Runner::plans() const {
  std::vector<std::shared_ptr<const Plan>> out;
  for (const State* s = state_.get(); s; s = s->rest())
    if (auto plan = s->plan()) out.push_back(std::move(plan));
  return out;
}

std::size_t Runner::arena_bytes() const { return state_->arena_bytes(); }

std::vector<StepCount> Runner::counts() const {
  std::vector<StepCount> out;
  state_->add_counts(out);
  return out;
}

std::vector<StepTime> Runner::times() const {
  std::vector<StepTime> out;
  for (const State* s = state_.get(); s; s = s->rest())
    out.insert(out.end(), s->times.begin(), s->times.end());
  return out;
}

}  // namespace lamina
