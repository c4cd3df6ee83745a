#include "api/request_state.h"

#include "api/inside.h"
#include "base/guard.h"

namespace lamina {

Request Compiled::request() const { return Request(std::make_unique<Request::State>(*this)); }

Request::State& Inside::of(const Request& request) {
  if (!request.state_) fail(ErrorCode::bad_call, "the request was moved from");
  return *request.state_;
}

const Runner& Inside::runner_of(const Request& request) { return of(request).runner; }

Request::Request(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Request::Request(Request&&) noexcept = default;
Request& Request::operator=(Request&&) noexcept = default;
Request::~Request() = default;

void Request::set_input(std::size_t index, Tensor tensor) {
  guarded("Request::set_input", [&] {
    const State::Use use(Inside::of(*this));
    state_->set_input(index, std::move(tensor));
  });
}

void Request::set_input(std::string_view name, Tensor tensor) {
  guarded("Request::set_input", [&] {
    const State::Use use(Inside::of(*this));
    state_->set_input(index_of(state_->inputs, name, "input"), std::move(tensor));
  });
}

void Request::set_output(std::size_t index, Tensor tensor) {
  guarded("Request::set_output", [&] {
    const State::Use use(Inside::of(*this));
    state_->set_output(index, std::move(tensor));
  });
}

void Request::set_output(std::string_view name, Tensor tensor) {
  guarded("Request::set_output", [&] {
    const State::Use use(Inside::of(*this));
    state_->set_output(index_of(state_->outputs, name, "output"), std::move(tensor));
  });
}

void Request::run() {
  guarded("Request::run", [&] {
    const State::Use use(Inside::of(*this));
    state_->run();
  });
}

const Tensor& Request::output(std::size_t index) const {
  return guarded(
      "Request::output", [&]() -> auto& {
        Inside::of(*this).require_idle();
        return state_->output(index);
      });
}

const Tensor& Request::output(std::string_view name) const {
  return guarded(
      "Request::output", [&]() -> auto& {
        Inside::of(*this).require_idle();
        return state_->output(index_of(state_->outputs, name, "output"));
      });
}

Tensor Request::variable(std::string_view name) const {
  return guarded("Request::variable", [&] {
    Inside::of(*this).require_idle();
    auto value = state_->runner.variable(index_of(state_->variables, name, "variable"));
    if (!value.valid())
      fail(ErrorCode::bad_input,
           "variable \"{}\": its initial value is computed of the inputs of the first run", name);
    return value;
  });
}

void Request::set_variable(std::string_view name, const Tensor& value) {
  guarded("Request::set_variable", [&] {
    const State::Use use(Inside::of(*this));
    state_->runner.set_variable(index_of(state_->variables, name, "variable"), value);
  });
}

void Request::reset_state() {
  guarded("Request::reset_state", [&] {
    const State::Use use(Inside::of(*this));
    state_->runner.reset_variables();
  });
}

std::vector<LayerTime> Request::layer_times() const {
  return guarded("Request::layer_times", [&] {
    Inside::of(*this).require_idle();
    std::vector<LayerTime> out;
    for (const auto& t : state_->runner.times()) out.push_back({t.step->name, t.step->label, t.microseconds});
    return out;
  });
}

std::size_t Request::memory() const {
  return guarded("Request::memory", [&] {
    Inside::of(*this).require_idle();
    return state_->runner.arena_bytes();
  });
}

}  // namespace lamina
