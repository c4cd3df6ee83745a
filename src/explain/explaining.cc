#include "explain/explaining.h"

#include <algorithm>

#include "api/errors.h"
#include "base/arena.h"
#include "base/shape_only.h"
#include "exec/variable_memory.h"
#include "explain/rows.h"
#include "explain/summary.h"
#include "explain/verdict.h"

namespace lamina {
namespace {

/// One for each input of the model.
void require_count(std::size_t given, const char* what, std::size_t wanted) {
  if (given != wanted)
    fail(ErrorCode::bad_input, "{} {}{} given, the model has {} input{}", given, what, given == 1 ? "" : "s",
         wanted, wanted == 1 ? "" : "s");
}

/// The input of the caller's, or what it is if it is not set.
Tensor given_input(const Port& port, const Tensor& given) {
  if (given.valid()) return given;
  if (!port.value.valid()) fail(ErrorCode::bad_input, "input \"{}\" is missing", port.name);
  return port.value;
}

Tensor standing_for(const Port& port, const Dims& shape) {
  return naming_port("input", port, [&] {
    element_count(shape);
    return shape_only(port.type, shape);
  });
}

/// The input with the sizes of the file.
Tensor sized_by_file(const Port& port) {
  if (port.value.valid()) return port.value;
  const bool open = !port.ranked || std::find(port.shape.begin(), port.shape.end(), -1) != port.shape.end();
  if (open)
    fail(ErrorCode::bad_input, "the sizes of input \"{}\" are not known ({}): wanted inputs, or their shapes",
         port.name, to_string(port));
  return shape_only(port.type, port.shape);
}

std::vector<Tensor> inputs_of(const Compiled& compiled, const ExplainOptions& options) {
  const auto& ports = compiled.model().inputs();
  std::vector<Tensor> out;
  if (!options.inputs.empty()) {
    require_count(options.inputs.size(), "input", ports.size());
    for (std::size_t i = 0; i < ports.size(); ++i) out.push_back(given_input(ports[i], options.inputs[i]));
    return out;
  }
  if (options.seconds && !ports.empty())
    fail(ErrorCode::bad_input, "input \"{}\" is missing: times are of runs", ports[0].name);
  const auto* shapes = &options.shapes;
  if (const auto& planned = compiled.model().compiled_for(); shapes->empty() && !planned.empty())
    shapes = &planned[0];
  if (!shapes->empty()) require_count(shapes->size(), "shape", ports.size());
  for (std::size_t i = 0; i < ports.size(); ++i)
    out.push_back(shapes->empty() ? sized_by_file(ports[i]) : standing_for(ports[i], (*shapes)[i]));
  return out;
}

/// Runs the model, or only plans it.
void find_plans(const ExplainOptions& options, Explanation::State& state) {
  const auto& compiled = *state.compiled;
  compiled.notice_exit();
  auto request = compiled.request();
  for (std::size_t i = 0; i < state.inputs.size(); ++i) request.set_input(i, state.inputs[i]);
  if (options.seconds) {
    request.set_profile(true);
    state.all.profile = profile_runs(request, *options.seconds, options.stop);
    state.all.plans = state.all.profile.plans();
    return;
  }
  explaining(compiled, options.stop, [&] {
    const auto& program = compiled.program();
    const auto whole = with_variables(program, state.inputs);
    on_shapes(compiled.model().inputs(), state.inputs, [&] {
      on_threads(compiled.threads(), [&] { state.all.plans.push_back(program->plan(whole)->plan); });
    });
  });
}

}  // namespace

const ModelVerdict& Explanation::State::verdict() const {
  judged_([&] { verdict_ = verdict_of(all, *compiled, model, command_options, !described); });
  return verdict_;
}

const Explanation::State& Explaining::state_of(const Explanation& explanation) {
  if (!explanation.state_) fail(ErrorCode::bad_call, "the explanation is empty: explain() makes one");
  return *explanation.state_;
}

Explanation Explaining::of(const std::shared_ptr<const Compiled>& of, const ExplainOptions& options,
                           bool described) {
  const auto& compiled = *of;
  auto state = std::make_shared<Explanation::State>(of);
  state->inputs = inputs_of(compiled, options);
  state->model = options.model.empty() ? compiled.model().path() : options.model;
  state->command_options = options.command_options;
  state->described = described;
  state->stop = options.stop;
  find_plans(options, *state);
  Explanation out;
  explaining(compiled, options.stop, [&] {
    auto& all = state->all;
    all.outcomes = layer_outcomes(compiled, all.plans);
    out.model = state->model;
    out.machine = planned_machine(compiled, described);
    out.precision_notes = compiled.precision_notes();
    out.layers = layer_rows(compiled, all);
    out.steps = step_rows(all);
    out.rules = rule_rows(compiled, all);
    out.fused_layers = fused_layers(all.outcomes);
    out.extension_rules = extension_rows(compiled, all);
    out.alone = unfused_rows(all);
    out.forecast = forecast_rows(compiled);
    out.totals = totals_of(all);
  });
  out.state_ = std::move(state);
  return out;
}

}  // namespace lamina
