/// The public function of lamina/reference.h.
#include "lamina/reference.h"

#include <algorithm>
#include <limits>

#include "api/at_work.h"
#include "api/inside.h"
#include "api/preparing.h"
#include "base/guard.h"
#include "interpreter/interpreter.h"

namespace lamina {
namespace {

/// Throws Error(bad_input) for a variable that the model does not have, or of another type.
void require_variables(const LoadedModel& model, const VariableValues& values) {
  for (const auto& [name, value] : values) {
    const auto& ports = model.variables();
    const auto port = std::find_if(ports.begin(), ports.end(), [&](const Port& p) { return p.name == name; });
    if (port == ports.end()) fail(ErrorCode::bad_input, "there is no variable \"{}\"", name);
    const bool sizes_fit =
        !port->ranked || std::equal(port->shape.begin(), port->shape.end(), value.shape().begin(),
                                    value.shape().end(), [](auto p, auto v) { return p < 0 || p == v; });
    if (value.element_type() != port->type || !sizes_fit)
      fail(ErrorCode::bad_input, "variable \"{}\" is {}, not {}[{}]", name, to_string(*port),
           name_of(value.element_type()), fmt::join(value.shape(), ","));
  }
}

ReferenceResult run(const LoadedModel& model, const std::vector<Tensor>& inputs,
                    const ReferenceOptions& options) {
  if (options.steps < 1) fail(ErrorCode::bad_option, "{} steps, wanted at least 1", options.steps);
  model.require_supported();
  require_variables(model, options.variables);
  ReferenceResult out;
  out.variables = options.variables;
  InterpreterOptions interpreting;
  interpreting.variables = &out.variables;
  for (int step = 0; step < options.steps; ++step)
    out.outputs = interpret(model.loaded().graph, inputs, interpreting);
  // What the interpreter only passes on is still an input, a constant or a variable.
  for (auto& tensor : out.outputs) tensor = tensor.clone();
  for (auto& [name, value] : out.variables) value = value.clone();
  return out;
}

}  // namespace

ReferenceResult run_reference(const Model& model, const std::vector<Tensor>& inputs,
                              const ReferenceOptions& options) {
  return guarded("run_reference", [&] {
    const AtWork here;
    const auto& loaded = Inside::of(model);
    const TokenSignal stop(options.stop);
    constexpr auto kMost = std::uint64_t{std::numeric_limits<std::int64_t>::max()};
    const auto iterations = std::min<std::uint64_t>(loaded.limits().loop_iterations, kMost);
    const StopRules rules{.signal = &stop,
                          .what = "the reference run",
                          .loop_iterations = static_cast<std::int64_t>(iterations)};
    return run_stoppable(rules, [&] {
      stop_point();
      const Within within(&loaded.bounds());
      return run(loaded, inputs, options);
    });
  });
}

}  // namespace lamina
