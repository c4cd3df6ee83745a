#include "exec/runner.h"

#include "base/cancellation.h"
#include "exec/plan_runs.h"
#include "exec/variable_memory.h"

namespace lamina {

class Runner::State {
 public:
  explicit State(const std::shared_ptr<const Program>& program)
      : threads(program->threads()),
        rules(program->run_rules()),
        variables(program),
        callers(program),
        runs(program, callers),
        bounds(program->bounds() ? *program->bounds() : WorkBounds()) {}

  void run(Stream& stream, const StopSignal* signal) {
    rules.signal = signal;
    try {
      callers.check();
      run_stoppable(rules, [&] {
        stream.execute([&] {
          stream.checkpoint();
          run_whole({stream, profile});
        });
      });
    } catch (...) {
      runs.forget();
      throw;
    }
  }

  const int threads;
  StopRules rules;
  VariableMemory variables;
  CallersTensors callers;
  PlanRuns runs;
  WorkBounds bounds;
  bool profile = false;

 private:
  /// To be called inside the arena.
  void run_whole(const RunContext& context) {
    auto here = bounds;
    if (here.given != 0)
      for (const auto& input : callers.inputs()) here.given += input.bytes();
    const Within within(&here);
    if (!variables.empty()) variables.begin(callers.inputs());
    runs.run(callers.inputs(), callers.results(), context);
    if (!variables.empty()) variables.keep(runs.results());
  }
};

Runner::Runner(const std::shared_ptr<const Program>& program) : state_(std::make_unique<State>(program)) {}
Runner::~Runner() = default;
Runner::Runner(Runner&&) noexcept = default;
Runner& Runner::operator=(Runner&&) noexcept = default;

void Runner::set_input(std::size_t index, Tensor tensor) {
  state_->callers.set_input(index, std::move(tensor));
}
void Runner::set_output(std::size_t index, Tensor tensor) {
  state_->callers.set_result(index, std::move(tensor));
  state_->runs.given_changed();
}
const std::vector<Tensor>& Runner::inputs() const { return state_->callers.inputs(); }

Tensor Runner::variable(std::size_t index) const { return state_->variables.get(index); }
void Runner::set_variable(std::size_t index, const Tensor& value) {
  const Within within(&state_->bounds);
  state_->variables.set(index, value);
}
void Runner::reset_variables() { state_->variables.reset(); }

void Runner::run(Stream& stream, const StopSignal* signal) { state_->run(stream, signal); }

Stream& Runner::own_stream() {
  if (!stream_) stream_ = std::make_unique<Stream>(StreamPlace{}, state_->threads, Binding::none);
  return *stream_;
}

void Runner::check() const { state_->callers.check(); }
void Runner::forget() noexcept { state_->runs.forget(); }
const Tensor& Runner::output(std::size_t index) const { return state_->runs.results().at(index); }
Tensor Runner::take_output(std::size_t index) { return state_->runs.take(index); }
void Runner::profile(bool on) { state_->profile = on; }
std::size_t Runner::arena_bytes() const { return state_->runs.arena_bytes(); }

std::vector<std::shared_ptr<const Plan>> Runner::plans() const {
  std::vector<std::shared_ptr<const Plan>> out;
  state_->runs.add_plans(out);
  return out;
}

std::vector<PlanChain> Runner::counted_plans() const { return state_->runs.counted_plans(); }

std::vector<StepTime> Runner::times() const {
  std::vector<StepTime> out;
  state_->runs.add_times(out);
  return out;
}

std::vector<StepCount> Runner::counts() const {
  std::vector<StepCount> out;
  state_->runs.add_counts(out);
  return out;
}

}  // namespace lamina
