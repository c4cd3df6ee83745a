#include <nanobind/stl/string.h>

#include "compiled.h"
#include "errors.h"
#include "interrupts.h"
#include "lamina/draw.h"
#include "long_work.h"

namespace lamina::python {
namespace {

/// `inputs`: arguments as of a call; none for sizes as in the file.
nb::object draw_compiled(const Compiled& self, const nb::tuple& inputs, const std::string& stage,
                         const std::string& format, std::size_t columns, double seconds) {
  const auto core = self.core;
  DrawOptions options{.stage = draw_stage_named(stage),
                      .format = draw_format_named(format),
                      .columns = columns,
                      .seconds = seconds};
  Lent slot(*core);
  if (nb::len(inputs) > 0) options.inputs = core->tensors_of(*slot, inputs);
  std::string drawing;
  stoppable(options.stop, [&] { drawing = draw(core->model(), options); });
  return text(drawing);
}

}  // namespace

void bind_draw(nb::module_& m) {
  m.def("draw", &draw_compiled, nb::arg("model"), nb::arg("inputs"), nb::arg("stage"), nb::arg("format"),
        nb::arg("columns"), nb::arg("seconds"),
        nb::sig("def draw(model: CompiledBase, inputs: tuple[typing.Any, ...], stage: str, format: str, "
                "columns: int, seconds: float) -> str"),
        "The text of a drawing; lamina.CompiledModel.graph describes it.");
}

}  // namespace lamina::python
