#include "api/request_state.h"

#include "api/at_work.h"
#include "api/counters.h"
#include "api/inside.h"
#include "base/exiting.h"
#include "base/guard.h"

namespace lamina {

Request::State& Inside::of(const Request& request) {
  if (!request.state_) fail(ErrorCode::bad_call, "the request was moved from");
  return *request.state_;
}

const Runner& Inside::runner_of(const Request& request) { return of(request).runner; }

Request::Request(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
Request::Request(Request&&) noexcept = default;
Request& Request::operator=(Request&& other) noexcept {
  if (this == &other) return *this;
  const Request before(std::move(*this));
  state_ = std::move(other.state_);
  return *this;
}
Request::~Request() {
  if (!state_) return;
  Scheduler::abandon(*state_);
  keep_at_exit(state_);
}

void Request::set_input(std::size_t index, Tensor tensor) {
  guarded("Request::set_input", [&] {
    const State::Change change(Inside::of(*this));
    state_->set_input(index, std::move(tensor));
  });
}

void Request::set_input(std::string_view name, Tensor tensor) {
  guarded("Request::set_input", [&] {
    const State::Change change(Inside::of(*this));
    state_->set_input(index_of(state_->inputs, name, "input"), std::move(tensor));
  });
}

void Request::set_output(std::size_t index, Tensor tensor) {
  guarded("Request::set_output", [&] {
    const State::Change change(Inside::of(*this));
    state_->set_output(index, std::move(tensor));
  });
}

void Request::set_output(std::string_view name, Tensor tensor) {
  guarded("Request::set_output", [&] {
    const State::Change change(Inside::of(*this));
    state_->set_output(index_of(state_->outputs, name, "output"), std::move(tensor));
  });
}

void Request::run() {
  guarded("Request::run", [&] {
    auto& state = Inside::of(*this);
    state.require_settable();
    state.notice_exit();
    state.scheduler().run(state);
  });
}

void Request::run_for(std::chrono::nanoseconds time) {
  guarded("Request::run_for", [&] {
    auto& state = Inside::of(*this);
    state.require_settable();
    state.notice_exit();
    state.scheduler().run(state, time);
  });
}

void Request::start() {
  guarded("Request::start", [&] {
    auto& state = Inside::of(*this);
    state.require_settable();
    state.check();
    state.notice_exit();
    state.scheduler().start(state_);
  });
}

/// What a callback threw is the user's own: it is thrown as it is.
void Request::wait() {
  std::exception_ptr error;
  guarded("Request::wait", [&] { Scheduler::wait(Inside::of(*this), std::nullopt, error); });
  if (error) std::rethrow_exception(error);
}

bool Request::wait_for(std::chrono::nanoseconds time) {
  std::exception_ptr error;
  const bool rests =
      guarded("Request::wait_for", [&] { return Scheduler::wait(Inside::of(*this), time, error); });
  if (error) std::rethrow_exception(error);
  return rests;
}

void Request::cancel() noexcept {
  if (state_) Scheduler::cancel(*state_);
}

void Request::set_callback(std::function<void(std::exception_ptr)> callback) {
  guarded("Request::set_callback", [&] {
    const State::Change change(Inside::of(*this));
    state_->set_callback(std::move(callback));
  });
}

RequestStatus Request::status() const noexcept {
  if (!state_) return RequestStatus::idle;
  switch (state_->state()) {
    case JobState::idle:
      return RequestStatus::idle;
    case JobState::done:
      return RequestStatus::done;
    case JobState::failed:
      return RequestStatus::failed;
    case JobState::canceled:
      return RequestStatus::canceled;
    case JobState::queued:
    case JobState::dropped:
      return RequestStatus::queued;
    default:
      return RequestStatus::running;
  }
}

void Request::set_profile(bool on) {
  guarded("Request::set_profile", [&] {
    const State::Change change(Inside::of(*this));
    state_->profiled = on;
    state_->runner.profile(on);
  });
}

const Tensor& Request::output(std::size_t index) const {
  return guarded(
      "Request::output", [&]() -> auto& {
        Inside::of(*this).require_settable();
        return state_->output(index);
      });
}

const Tensor& Request::output(std::string_view name) const {
  return guarded(
      "Request::output", [&]() -> auto& {
        Inside::of(*this).require_settable();
        return state_->output(index_of(state_->outputs, name, "output"));
      });
}

Tensor Request::take_output(std::size_t index) {
  return guarded("Request::take_output", [&] {
    const State::Change change(Inside::of(*this));
    return state_->take_output(index);
  });
}

Tensor Request::take_output(std::string_view name) {
  return guarded("Request::take_output", [&] {
    const State::Change change(Inside::of(*this));
    return state_->take_output(index_of(state_->outputs, name, "output"));
  });
}

Tensor Request::variable(std::string_view name) const {
  return guarded("Request::variable", [&] {
    Inside::of(*this).require_settable();
    auto value = state_->runner.variable(index_of(state_->variables, name, "variable"));
    if (!value.valid())
      fail(ErrorCode::bad_input,
           "variable \"{}\": its initial value is computed of the inputs of the first run", name);
    return value;
  });
}

void Request::set_variable(std::string_view name, const Tensor& value) {
  guarded("Request::set_variable", [&] {
    const State::Change change(Inside::of(*this));
    state_->runner.set_variable(index_of(state_->variables, name, "variable"), value);
  });
}

void Request::reset_state() {
  guarded("Request::reset_state", [&] {
    const State::Change change(Inside::of(*this));
    state_->runner.reset_variables();
  });
}

std::vector<LayerCounter> Request::counters() const {
  return guarded("Request::counters", [&] {
    const auto& state = Inside::of(*this);
    state.require_settable();
    if (!state.profiled) fail(ErrorCode::bad_option, "not collected: PERF_COUNT is NO");
    const AtWork here;  // what came from a file is rewritten now
    return counters_of(*state.compiled, state.runner);
  });
}

std::vector<LayerTime> Request::layer_times() const {
  return guarded("Request::layer_times", [&] {
    Inside::of(*this).require_settable();
    std::vector<LayerTime> out;
    for (const auto& t : state_->runner.times()) out.push_back({t.step->name, t.step->label, t.microseconds});
    return out;
  });
}

std::size_t Request::memory() const {
  return guarded("Request::memory", [&] {
    Inside::of(*this).require_settable();
    return state_->runner.arena_bytes();
  });
}

}  // namespace lamina
