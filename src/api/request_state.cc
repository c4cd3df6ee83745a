#include "api/request_state.h"

#include "api/errors.h"

namespace lamina {
namespace {

void check_index(std::size_t index, const std::vector<Port>& ports, std::string_view what) {
  if (index >= ports.size()) fail(ErrorCode::bad_input, "{} {}: the model has {}", what, index, ports.size());
}

}  // namespace

Request::State::State(const Compiled& compiled)
    : program(compiled.program()),
      inputs(compiled.model().inputs()),
      outputs(compiled.model().outputs()),
      variables(compiled.model().variables()),
      runner(program) {
  runner.profile(compiled.options().profile);
  for (std::size_t i = 0; i < inputs.size(); ++i) set_input(i, {});
}

Request::State::Use::Use(State& state) : state_(state) {
  if (state.busy_.exchange(true, std::memory_order_acquire))
    fail(ErrorCode::bad_call, "the request is in use by another thread: wanted a request per thread");
}

void Request::State::require_idle() const {
  if (busy_.load(std::memory_order_acquire))
    fail(ErrorCode::bad_call, "the request is in use by another thread: wanted a request per thread");
}

void Request::State::set_input(std::size_t index, Tensor tensor) {
  check_index(index, inputs, "input");
  runner.set_input(index, tensor.valid() ? std::move(tensor) : inputs[index].value);
}

void Request::State::set_output(std::size_t index, Tensor tensor) {
  check_index(index, outputs, "output");
  runner.set_output(index, std::move(tensor));
}

void Request::State::run() {
  on_shapes(inputs, runner.inputs(), [&] { runner.run(); });
}

const Tensor& Request::State::output(std::size_t index) const {
  check_index(index, outputs, "output");
  const auto& output = runner.output(index);
  if (!output.valid())
    fail(ErrorCode::bad_call, "output \"{}\": nothing has run yet, or the last run failed",
         outputs[index].name);
  return output;
}

}  // namespace lamina
