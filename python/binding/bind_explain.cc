#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "compiled.h"
#include "interrupts.h"
#include "lamina/explain.h"
#include "long_work.h"

namespace lamina::python {
namespace {

/// `inputs`: arguments as of a call, or none.
Explanation explained(const Compiled& self, const nb::tuple& inputs, std::vector<Dims> shapes,
                      std::optional<double> seconds) {
  const auto core = self.core;
  ExplainOptions options{.shapes = std::move(shapes), .seconds = seconds};
  Lent slot(*core);
  if (nb::len(inputs) > 0) options.inputs = core->tensors_of(*slot, inputs);
  std::optional<Explanation> out;
  stoppable(options.stop, [&] { out = explain(core->model(), options); });
  return std::move(*out);
}

/// A str, or None for an empty one.
nb::object some(const std::string& of) { return of.empty() ? nb::none() : text(of); }
nb::object some(bool known, double number) { return known ? nb::cast(number) : nb::none(); }

nb::tuple history_of(const LayerExplanation& layer) {
  nb::list out;
  for (const auto& event : layer.history) out.append(text(to_string(event)));
  return nb::tuple(out);
}

nb::list layer_rows(const Compiled& self, const nb::tuple& inputs, std::vector<Dims> shapes,
                    std::optional<double> seconds) {
  const auto all = explained(self, inputs, std::move(shapes), seconds);
  nb::list rows;
  for (const auto& f : all.layers) {
    const bool runs = f.fate == LayerFate::runs, timed = runs && all.timed();
    rows.append(nb::make_tuple(text(f.name), text(f.type), text(name_of(f.fate)), some(f.into), some(f.rule),
                               text(f.reason), some(f.kernel), some(f.layout), some(f.precision),
                               some(runs, f.estimate_us), some(timed, f.us), some(timed, f.share),
                               history_of(f)));
  }
  return rows;
}

nb::list step_rows(const Compiled& self, const nb::tuple& inputs, double seconds) {
  const auto all = explained(self, inputs, {}, seconds);
  nb::list rows;
  for (const auto& s : all.steps)
    rows.append(nb::make_tuple(text(s.name), text(s.operators), text(s.kernel), text(s.layout),
                               text(s.precision), s.us, s.share, s.estimate_us, s.flops, s.bytes));
  return rows;
}

}  // namespace

void bind_explain(nb::module_& m) {
  m.def("explain", &layer_rows, nb::arg("model"), nb::arg("inputs"), nb::arg("shapes"),
        nb::arg("seconds").none(),
        nb::sig("def explain(model: CompiledBase, inputs: tuple[typing.Any, ...], shapes: list[list[int]], "
                "seconds: float | None) -> list[tuple[typing.Any, ...]]"),
        "What lamina.LayerExplanation is made of; lamina.CompiledModel.explain describes it.");
  m.def("profile", &step_rows, nb::arg("model"), nb::arg("inputs"), nb::arg("seconds"),
        nb::sig("def profile(model: CompiledBase, inputs: tuple[typing.Any, ...], seconds: float) -> "
                "list[tuple[typing.Any, ...]]"),
        "What lamina.StepTime is made of; lamina.CompiledModel.profile describes it.");
}

}  // namespace lamina::python
