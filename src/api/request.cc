#include "api/request_state.h"
#include "interpreter/interpreter.h"

namespace lamina {
namespace {

std::string names(const std::vector<Port>& ports) {
  std::string out;
  for (const auto& p : ports) out += (out.empty() ? "\"" : ", \"") + p.name + "\"";
  return out;
}

std::size_t index_of(const std::vector<Port>& ports, const std::string& name, std::string_view what) {
  for (std::size_t i = 0; i < ports.size(); ++i)
    if (ports[i].name == name) return i;
  fail(ErrorCode::bad_input, "there is no {} \"{}\", there are: {}", what, name, names(ports));
}

}  // namespace

Request Compiled::request() const {
  auto state = std::make_unique<Request::State>(*this);
  return Request(std::move(state));
}

Request::Request(std::unique_ptr<State> state) : state_(std::move(state)) {}
Request::Request(Request&&) noexcept = default;
Request& Request::operator=(Request&&) noexcept = default;
Request::~Request() = default;

void Request::set_input(std::size_t index, Tensor tensor) {
  const auto& graph = state_->program->graph();
  if (index >= state_->inputs.size())
    fail(ErrorCode::bad_input, "input {}: the model has {}", index, state_->inputs.size());
  check_input(graph, graph.inputs()[index], tensor);
  state_->runner.set_input(index, std::move(tensor));
}

void Request::set_input(const std::string& name, Tensor tensor) {
  set_input(index_of(state_->inputs, name, "input"), std::move(tensor));
}

void Request::set_output(std::size_t index, Tensor tensor) {
  if (index >= state_->outputs.size())
    fail(ErrorCode::bad_input, "output {}: the model has {}", index, state_->outputs.size());
  state_->runner.set_output(index, std::move(tensor));
}

void Request::run() { state_->runner.run(); }

const Tensor& Request::output(std::size_t index) const {
  if (index >= state_->outputs.size())
    fail(ErrorCode::bad_input, "output {}: the model has {}", index, state_->outputs.size());
  const auto& tensor = state_->runner.output(index);
  if (!tensor.valid())
    fail(ErrorCode::bad_input, "output \"{}\": nothing has run yet, or the last run failed",
         state_->outputs[index].name);
  return tensor;
}

const Tensor& Request::output(const std::string& name) const {
  return output(index_of(state_->outputs, name, "output"));
}

Tensor Request::variable(const std::string& name) const {
  auto value = state_->runner.variable(index_of(state_->variables, name, "variable"));
  if (!value.valid())
    fail(ErrorCode::bad_input,
         "variable \"{}\": its initial value is computed of the inputs of the first run", name);
  return value;
}

void Request::set_variable(const std::string& name, const Tensor& value) {
  state_->runner.set_variable(index_of(state_->variables, name, "variable"), value);
}

void Request::reset_state() { state_->runner.reset_variables(); }

std::vector<LayerTime> Request::layer_times() const {
  std::vector<LayerTime> out;
  for (const auto& t : state_->runner.times()) out.push_back({t.step->name, t.step->label, t.microseconds});
  return out;
}

std::size_t Request::memory() const { return state_->runner.arena_bytes(); }
const Runner& Request::runner() const { return state_->runner; }

}  // namespace lamina
