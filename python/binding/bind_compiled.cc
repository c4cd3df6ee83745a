#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "compiled.h"
#include "errors.h"
#include "gil.h"
#include "interrupts.h"
#include "long_work.h"

namespace lamina::python {
namespace {

const char* name_of_level(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::error:
      return "error";
    case LogLevel::warning:
      return "warning";
    case LogLevel::info:
      return "info";
    case LogLevel::debug:
      break;
  }
  return "debug";
}

/// Errors of a log callback go to sys.unraisablehook: the library's must not throw.
LogCallback logging_to(const std::shared_ptr<Callback>& to) {
  return [to](LogLevel level, std::string_view line) {
    tell_python([&] {
      if (!to->get()) return;
      try {
        call_python(to->get(), nb::make_tuple(name_of_level(level), text(line)));
      } catch (nb::python_error& error) {
        const nb::str where("lamina's log callback");
        error.restore();
        in_python([&] { PyErr_WriteUnraisable(where.ptr()); });
      } catch (const std::exception&) {
      }
    });
  };
}

ProgressCallback progressing_to(const std::shared_ptr<Callback>& to) {
  return [to](std::string_view stage, double done) {
    tell_python([&] {
      if (to->get()) call_python(to->get(), nb::make_tuple(text(stage), done));
    });
  };
}

std::shared_ptr<Callback> callback_of(nb::handle callable) {
  return callable.is_none() ? nullptr : std::make_shared<Callback>(nb::borrow(callable));
}

Precision precision_named(const std::string& name) {
  for (const auto& [known, value] :
       std::initializer_list<std::pair<const char*, Precision>>{{"model", Precision::model},
                                                                {"f32", Precision::f32},
                                                                {"bf16", Precision::bf16},
                                                                {"f16", Precision::f16}})
    if (name == known) return value;
  fail(ErrorCode::bad_option, "precision \"" + name + "\", wanted model, f32, bf16 or f16");
}

void make_compiled(Compiled* self, const Read& read, int threads, const std::string& precision,
                   std::vector<std::string> disable, std::vector<std::string> exempt, std::string max_isa,
                   bool profile, std::size_t cached_plans,
                   const std::map<std::string, std::string>& properties, nb::handle log,
                   nb::handle progress) {
  release_let_go();
  Options options;
  options.limits = read.limits;
  options.threads = threads;
  if (precision != "model") options.precision = precision_named(precision);
  options.disable = std::move(disable);
  options.exempt = std::move(exempt);
  options.max_isa = std::move(max_isa);
  options.profile = profile;
  options.cached_plans = cached_plans;
  for (const auto& [key, value] : properties) options.set(key, value);
  const auto logs = callback_of(log), progresses = callback_of(progress);
  if (logs) options.log = logging_to(logs);
  if (progresses) options.progress = progressing_to(progresses);

  std::optional<CompiledModel> made;
  stoppable(options.stop, [&] { made.emplace(*read.model, options); });
  new (self) Compiled{std::make_shared<Core>(std::move(*made), logs, progresses)};
}

/// compiled(*args, out=None, **named)
PyObject* call(PyObject* self, PyObject* args, PyObject* named) noexcept {
  static PyObject* const out_name = PyUnicode_InternFromString("out");
  try {
    // The model's own part may be replaced by none, but not while the call runs.
    const auto core = nb::inst_ptr<Compiled>(self)->core;
    Lent slot(*core);
    nb::object others = nb::borrow(named);
    if (PyObject* out = named ? PyDict_GetItemWithError(named, out_name) : nullptr) {
      if (out != Py_None) core->take_outputs(*slot, out);
      others = nb::steal(PyDict_Copy(named));
      if (PyDict_DelItem(others.ptr(), out_name) != 0) throw nb::python_error();
    }
    core->take_arguments(*slot, args, others.ptr());
    auto& request = *(*slot).request;
    without_the_gil({[](void* r) { static_cast<Request*>(r)->cancel(); }, &request}, [&] { request.run(); });
    return core->results(*slot).release().ptr();
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const Error& error) {
    try {
      raise(error);
    } catch (nb::python_error& e) {
      e.restore();
    }
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

/// Callbacks may refer to the model: such cycles are the garbage collector's.
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  const auto& core = nb::inst_ptr<Compiled>(self)->core;
  if (!core) return 0;
  if (core->log)
    if (const int result = core->log->visit(visit, arg)) return result;
  return core->progress ? core->progress->visit(visit, arg) : 0;
}

int clear(PyObject* self) {
  if (!nb::inst_ready(self)) return 0;
  const auto& core = nb::inst_ptr<Compiled>(self)->core;
  if (core && core->log) core->log->clear();
  if (core && core->progress) core->progress->clear();
  return 0;
}

PyType_Slot kSlots[] = {{Py_tp_call, reinterpret_cast<void*>(call)},
                        {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                        {Py_tp_clear, reinterpret_cast<void*>(clear)},
                        {0, nullptr}};

nb::list property_rows(const std::vector<Property>& properties) {
  nb::list rows;
  for (const auto& p : properties)
    rows.append(nb::make_tuple(text(p.key), text(p.value), text(p.asked), text(p.reason), p.read_only));
  return rows;
}

}  // namespace

void bind_compiled(nb::module_& m) {
  nb::class_<Compiled>(m, "CompiledBase", nb::type_slots(kSlots), "The base of lamina.CompiledModel.")
      .def("__init__", &make_compiled, nb::arg("model"), nb::arg("threads"), nb::arg("precision"),
           nb::arg("disable"), nb::arg("exempt"), nb::arg("max_isa"), nb::arg("profile"),
           nb::arg("cached_plans"), nb::arg("properties"), nb::arg("log").none(), nb::arg("progress").none(),
           nb::sig("def __init__(self, model: ModelBase, threads: int, precision: str, disable: list[str], "
                   "exempt: list[str], max_isa: str, profile: bool, cached_plans: int, properties: dict[str, "
                   "str], log: object | None, progress: object | None) -> None"))
      .def(
          "input_rows", [](const Compiled& self) { return rows_of(self.core->model().inputs()); },
          nb::sig("def input_rows(self) -> list[tuple[typing.Any, ...]]"), "What Port is made of.")
      .def(
          "output_rows", [](const Compiled& self) { return rows_of(self.core->model().outputs()); },
          nb::sig("def output_rows(self) -> list[tuple[typing.Any, ...]]"), "What Port is made of.")
      .def(
          "variable_rows", [](const Compiled& self) { return rows_of(self.core->model().variables()); },
          nb::sig("def variable_rows(self) -> list[tuple[typing.Any, ...]]"), "What Port is made of.")
      .def(
          "rows_for_shapes",
          [](const Compiled& self, const std::vector<Dims>& shapes) {
            return rows_of(unlocked([&] { return self.core->model().output_ports(shapes); }));
          },
          nb::arg("shapes"),
          nb::sig("def rows_for_shapes(self, shapes: list[list[int]]) -> list[tuple[typing.Any, ...]]"),
          "What the Ports of the outputs are made of, for inputs of these shapes.")
      .def(
          "plan_shapes",
          [](const Compiled& self, const std::vector<Dims>& shapes) {
            std::stop_token stop;
            stoppable(stop, [&] { self.core->model().plan(shapes, stop); });
          },
          nb::arg("shapes"), nb::sig("def plan_shapes(self, shapes: list[list[int]]) -> None"),
          "Plans for inputs of these shapes.")
      .def_prop_ro(
          "plans", [](const Compiled& self) { return self.core->model().plans(); },
          "Number of plans in memory: one for each combination of input shapes, and for parts of the model.")
      .def_prop_ro(
          "threads", [](const Compiled& self) { return self.core->model().threads(); },
          "Threads of one stream.")
      .def_prop_ro(
          "streams", [](const Compiled& self) { return self.core->model().streams(); },
          "Number of requests that run at the same time; 0: the callers' threads do the work, any number.")
      .def_prop_ro(
          "optimal_requests", [](const Compiled& self) { return self.core->model().optimal_requests(); },
          "Number of requests that keep all streams busy.")
      .def_prop_ro(
          "fusions",
          [](const Compiled& self) {
            nb::dict counts;
            for (const auto& f : unlocked([&] { return self.core->model().fusions(); }))
              counts[text(f.rule)] = f.count;
            return counts;
          },
          nb::sig("def fusions(self) -> dict[str, int]"), "How often each optimisation changed the graph.")
      .def_prop_ro(
          "weight_memory", [](const Compiled& self) { return self.core->model().weight_memory(); },
          "Bytes of packed weights so far.")
      .def(
          "property",
          [](const Compiled& self, const std::string& key) { return text(self.core->model().property(key)); },
          nb::arg("key"), nb::sig("def property(self, key: str) -> str"),
          "The value of a property (an option in use, or a fact), by its key. Raises BadOption, which names "
          "the "
          "nearest key.")
      .def(
          "property_rows",
          [](const Compiled& self) { return property_rows(self.core->model().properties()); },
          nb::sig("def property_rows(self) -> list[tuple[str, str, str, str, bool]]"),
          "What Property is made of.")
      .def(
          "save",
          [](const Compiled& self, const nb::bytes& path) {
            unlocked([&] { self.core->model().save(std::string(path.c_str(), path.size())); });
          },
          nb::arg("path"), nb::sig("def save(self, path: bytes) -> None"), "Writes the compiled model.");
}

}  // namespace lamina::python
