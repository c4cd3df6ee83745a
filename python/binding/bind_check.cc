/// Checks of compiled models.
#include "arrays.h"
#include "compiled.h"
#include "errors.h"
#include "lamina/check.h"
#include "long_work.h"

namespace lamina::python {
namespace {

/// Outputs by name, in their order (None for those that are not compared), or the only one. None: there are
/// none.
std::vector<Tensor> expected_of(const Core& core, nb::handle given) {
  const auto& ports = core.outputs;
  if (given.is_none()) return {};
  std::vector<Tensor> out(ports.size());
  const auto put = [&](std::size_t i, nb::handle array) {
    if (!array.is_none()) out[i] = copy_of(array, ports[i], "expected output");
  };
  if (is_array(given) && ports.size() == 1) {
    put(0, given);
  } else if (PyMapping_Check(given.ptr()) && nb::hasattr(given, "items")) {
    for (const nb::handle item : given.attr("items")()) put(ports.index(item[0]), item[1]);
  } else if (PyTuple_Check(given.ptr()) || PyList_Check(given.ptr())) {
    if (nb::len(given) != ports.size())
      fail(ErrorCode::bad_input, "expected: " + std::to_string(nb::len(given)) +
                                     " arrays given, the model has " + std::to_string(ports.size()) +
                                     " outputs");
    for (std::size_t i = 0; i < ports.size(); ++i) put(i, given[i]);
  } else {
    fail(ErrorCode::bad_input, "expected: a " + class_name(given) +
                                   " given, wanted a dict by name, or a sequence of " +
                                   std::to_string(ports.size()) + " arrays");
  }
  return out;
}

/// `inputs`: arguments as of a call.
nb::tuple check_compiled(const Compiled& self, const nb::tuple& inputs, nb::handle expected,
                         std::size_t steps, bool bisect, nb::handle progress) {
  const auto core = self.core;
  Lent slot(*core);
  const auto tensors = core->tensors_of(*slot, inputs);
  CheckOptions options{.expected = expected_of(*core, expected),
                       .steps = steps,
                       .bisect = bisect,
                       .progress = progress_of(progress)};
  CheckReport report;
  stoppable(options.stop, [&] { report = check(core->model(), tensors, options); });
  return nb::make_tuple(text(report.json()), texts_of(report.lines()));
}

}  // namespace

void bind_check(nb::module_& m) {
  m.def(
      "check", &check_compiled, nb::arg("model"), nb::arg("inputs"), nb::arg("expected").none(),
      nb::arg("steps"), nb::arg("bisect"), nb::arg("progress").none(),
      nb::sig("def check(model: CompiledBase, inputs: tuple[typing.Any, ...], expected: object, steps: int, "
              "bisect: bool, progress: typing.Callable[[str, float], object] | None) -> tuple[str, "
              "list[str]]"),
      "Checks a run; lamina.CompiledModel.check describes it. Returns the report as JSON and in lines.");
}

}  // namespace lamina::python
