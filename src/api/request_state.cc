#include "api/request_state.h"

#include "api/errors.h"
#include "base/guard.h"

namespace lamina {
namespace {

void check_index(std::size_t index, const std::vector<Port>& ports, std::string_view what) {
  if (index >= ports.size()) fail(ErrorCode::bad_input, "{} {}: the model has {}", what, index, ports.size());
}

/// Runs the body for so many seconds at most.
template <class F>
void within_seconds(double seconds, const F& body) {
  const StopScope here({.seconds = seconds});
  try {
    body();
  } catch (const Stopped& stopped) {
    if (stopped.by() != &here) throw;
    const auto& place = stopped.place();
    fail(ErrorCode::over_limit, "{}{}the inference took more than the time of run_for", place,
         place.empty() ? "" : ": ");
  }
}

[[noreturn]] void fail_busy() {
  fail(ErrorCode::busy, "the request is in use: an inference is under way, or another thread changes it");
}

}  // namespace

Request::State::State(std::shared_ptr<const Compiled> of)
    : compiled(std::move(of)),
      inputs(compiled->model().inputs()),
      outputs(compiled->model().outputs()),
      variables(compiled->model().variables()),
      runner(compiled->program()),
      profiled(compiled->options().profile) {
  runner.profile(profiled);
  for (std::size_t i = 0; i < inputs.size(); ++i) set_input(i, {});
}

void Request::State::require_settable() const {
  if (!settable() || changing_.load(std::memory_order_acquire)) fail_busy();
}

Request::State::Change::Change(State& state) : state_(state) {
  if (!state.settable() || state.changing_.exchange(true, std::memory_order_acquire)) fail_busy();
}

void Request::State::set_input(std::size_t index, Tensor tensor) {
  check_index(index, inputs, "input");
  runner.set_input(index, tensor.valid() ? std::move(tensor) : inputs[index].value);
}

void Request::State::set_output(std::size_t index, Tensor tensor) {
  check_index(index, outputs, "output");
  runner.set_output(index, std::move(tensor));
}

void Request::State::check() {
  on_shapes(inputs, runner.inputs(), [&] { runner.check(); });
}

void Request::State::infer(Stream& stream) {
  const auto run = [&] { on_shapes(inputs, runner.inputs(), [&] { runner.run(stream, this); }); };
  guarded("an inference", [&] {
    if (seconds_left() == 0) return run();
    within_seconds(seconds_left(), run);
  });
}

void Request::State::callback_failed(const std::exception_ptr& error) noexcept {
  try {
    const Logger log(compiled->options().log, LogLevel::error);
    std::string what = "an exception of unknown type";
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& e) {
      what = e.what();
    } catch (...) {
    }
    log.log(LogLevel::error, "a request's callback threw: {}", what);
  } catch (...) {  // it is thrown by wait(), too
  }
}

const Tensor& Request::State::output(std::size_t index) const {
  check_index(index, outputs, "output");
  const auto& output = runner.output(index);
  if (!output.valid() && state() == JobState::idle)
    fail(ErrorCode::bad_call, "output \"{}\": nothing has run yet", outputs[index].name);
  if (!output.valid() && state() == JobState::done)
    fail(ErrorCode::bad_call, "output \"{}\" was taken: it is there again after the next run",
         outputs[index].name);
  if (!output.valid())
    fail(ErrorCode::bad_input, "output \"{}\": the last run {}", outputs[index].name,
         state() == JobState::canceled ? "was cancelled" : "failed");
  return output;
}

Tensor Request::State::take_output(std::size_t index) {
  output(index);
  return runner.take_output(index);
}

}  // namespace lamina
