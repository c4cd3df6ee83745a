#include "api/request_state.h"

#include <algorithm>

#include "api/on_shapes.h"
#include "exec/bound.h"
#include "interpreter/interpreter.h"

namespace lamina {
namespace {

void check_index(std::size_t index, const std::vector<Port>& ports, std::string_view what) {
  if (index >= ports.size()) fail(ErrorCode::bad_input, "{} {}: the model has {}", what, index, ports.size());
}

/// What is known of the output before a run; the rest is checked by it.
void check_output(const Port& port, const Tensor& tensor) {
  const auto refuse = [&](std::string_view why) {
    fail(ErrorCode::bad_input, "output \"{}\": {}[{}]{}, wanted {}", port.name,
         name_of(tensor.element_type()), fmt::join(tensor.shape(), ","), why, to_string(port));
  };
  bool fits = port.type == ElementType::undefined || tensor.element_type() == port.type;
  fits &= !port.ranked || tensor.rank() == port.shape.size();
  for (std::size_t i = 0; fits && port.ranked && i < port.shape.size(); ++i)
    fits = port.shape[i] < 0 || port.shape[i] == tensor.shape()[i];
  if (!fits) refuse("");
  if (tensor.read_only()) refuse(" in memory that is only to be read");
  if (!tensor.aligned()) refuse(" at an address that does not suit its type");
}

}  // namespace

Request::State::State(const Compiled& compiled)
    : program(compiled.program()),
      inputs(compiled.model().inputs()),
      outputs(compiled.model().outputs()),
      variables(compiled.model().variables()),
      runner(program) {
  runner.profile(compiled.options().profile);
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
  if (tensor.valid()) check_input(program->graph(), program->graph().inputs()[index], tensor);
  runner.set_input(index, std::move(tensor));
  memory_checked_ = false;
}

void Request::State::set_output(std::size_t index, Tensor tensor) {
  check_index(index, outputs, "output");
  if (tensor.valid()) check_output(outputs[index], tensor);
  runner.set_output(index, std::move(tensor));
  memory_checked_ = false;
}

void Request::State::check_memory() const {
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const auto& output = runner.given_outputs()[o];
    if (!output.valid()) continue;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (overlap(output, runner.inputs()[i]))
        fail(ErrorCode::bad_input, "output \"{}\" overlaps input \"{}\", wanted memory of its own",
             outputs[o].name, inputs[i].name);
    for (std::size_t other = 0; other < o; ++other)
      if (overlap(output, runner.given_outputs()[other]))
        fail(ErrorCode::bad_input, "output \"{}\" overlaps output \"{}\", wanted memory of its own",
             outputs[o].name, outputs[other].name);
  }
}

void Request::State::run() {
  has_run_ = false;
  if (!memory_checked_) check_memory();
  memory_checked_ = true;
  on_shapes(inputs, runner.inputs(), [&] { runner.run(); });
  has_run_ = true;
}

const Tensor& Request::State::output(std::size_t index) const {
  check_index(index, outputs, "output");
  if (!has_run_)
    fail(ErrorCode::bad_call, "output \"{}\": nothing has run yet, or the last run failed",
         outputs[index].name);
  return runner.output(index);
}

}  // namespace lamina
