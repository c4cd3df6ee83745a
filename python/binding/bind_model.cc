#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "compiled.h"
#include "errors.h"
#include "gil.h"
#include "interrupts.h"
#include "long_work.h"
#include "sizes.h"

namespace lamina::python {
namespace {

std::span<const std::byte> span_of(nb::handle bytes) {
  return {reinterpret_cast<const std::byte*>(PyBytes_AsString(bytes.ptr())),
          static_cast<std::size_t>(PyBytes_Size(bytes.ptr()))};
}

/// Objects that a model in memory reads from.
std::shared_ptr<const void> owner_of(nb::handle objects) {
  return {objects.inc_ref().ptr(),
          [](const void* p) { let_go(static_cast<PyObject*>(const_cast<void*>(p))); }};
}

struct Source {
  std::string path;        // of a file; or
  nb::object data;         // the bytes of a model
  nb::object weights;      // a path (str) or bytes; or null
  nb::dict external_data;  // location: bytes
};

ModelBytes bytes_of(const Source& source) {
  ModelBytes bytes;
  bytes.model = span_of(source.data);
  if (source.weights.is_valid()) bytes.weights = span_of(source.weights);
  for (const auto& [location, part] : source.external_data)
    bytes.external_data[nb::cast<std::string>(location)] = span_of(part);
  bytes.owner = owner_of(nb::make_tuple(source.data,
                                        source.weights.is_valid() ? source.weights : nb::object(nb::none()),
                                        source.external_data));
  return bytes;
}

/// Reads the model, without the GIL.
void read(Read& into, const Source& source, ReadOptions& options) {
  if (source.data.is_valid()) {
    const ModelBytes bytes = bytes_of(source);
    stoppable(options.stop, [&] { into.model = Model::from_memory(bytes, options); });
  } else {
    stoppable(options.stop, [&] { into.model = Model(source.path, options); });
  }
}

void make_read(Read* self, const nb::bytes& path, nb::handle data, nb::handle weights,
               const nb::dict& external_data, std::vector<std::string> settable,
               std::vector<std::string> extensions, const std::map<std::string, std::string>& limits,
               const std::map<std::string, Sizes>& input_shapes) {
  release_let_go();
  Source source;
  source.path.assign(path.c_str(), path.size());
  source.external_data = external_data;
  ReadOptions options;
  options.settable = std::move(settable);
  options.extensions = std::move(extensions);
  if (!data.is_none()) source.data = nb::borrow(data);
  if (!weights.is_none() && source.data.is_valid()) source.weights = nb::borrow(weights);
  if (!weights.is_none() && !source.data.is_valid()) {
    const auto file = span_of(weights);
    options.weights.assign(reinterpret_cast<const char*>(file.data()), file.size());
  }
  Options wanted;
  for (const auto& [key, value] : limits) wanted.set(key, value);
  options.limits = wanted.limits;
  options.input_shapes = named_shapes(input_shapes);
  auto* read_into = new (self) Read{.model = {}, .limits = wanted.limits};
  try {
    read(*read_into, source, options);
  } catch (...) {
    read_into->~Read();
    throw;
  }
}

const Model& of(const Read& read) { return *read.model; }

nb::list texts(const std::vector<std::string>& of) {
  nb::list list;
  for (const auto& line : of) list.append(text(line));
  return list;
}

}  // namespace

void bind_model(nb::module_& m) {
  nb::class_<Read>(m, "ModelBase", "The base of lamina.Model.")
      .def(
          "__init__", &make_read, nb::arg("path"), nb::arg("data").none(), nb::arg("weights").none(),
          nb::arg("external_data"), nb::arg("settable"), nb::arg("extensions"), nb::arg("limits"),
          nb::arg("input_shapes"),
          nb::sig("def __init__(self, path: bytes, data: bytes | None, weights: bytes | None, external_data: "
                  "dict[str, bytes], settable: list[str], extensions: list[str], limits: dict[str, str], "
                  "input_shapes: dict[str, list[tuple[int, int]]]) -> None"),
          "Reads the file `path`, or the bytes `data`; `weights` is a path or the bytes.")
      .def(
          "input_rows", [](const Read& self) { return rows_of(of(self).inputs()); },
          nb::sig("def input_rows(self) -> list[tuple[typing.Any, ...]]"), "What Port is made of.")
      .def(
          "output_rows", [](const Read& self) { return rows_of(of(self).outputs()); },
          nb::sig("def output_rows(self) -> list[tuple[typing.Any, ...]]"), "What Port is made of.")
      .def(
          "variable_rows", [](const Read& self) { return rows_of(of(self).variables()); },
          nb::sig("def variable_rows(self) -> list[tuple[typing.Any, ...]]"), "What Port is made of.")
      .def(
          "rows_for_shapes",
          [](const Read& self, const std::map<std::string, Sizes>& shapes) {
            const auto wanted = named_shapes(shapes);
            return rows_of(unlocked([&] { return of(self).output_ports(wanted); }));
          },
          nb::arg("shapes"),
          nb::sig("def rows_for_shapes(self, shapes: dict[str, list[tuple[int, int]]]) -> "
                  "list[tuple[typing.Any, ...]]"),
          "What the Ports of the outputs are made of, for inputs of these shapes.")
      .def_prop_ro(
          "is_compiled", [](const Read& self) { return of(self).is_compiled(); },
          "True if CompiledModel.save() wrote the model's file.")
      .def_prop_ro(
          "metadata",
          [](const Read& self) {
            nb::dict all;
            for (const auto& [key, value] : of(self).metadata()) all[text(key)] = text(value);
            return all;
          },
          nb::sig("def metadata(self) -> dict[str, str]"),
          "Texts about the model in its file, by key (ONNX: metadata_props; IR: rt_info).")
      .def_prop_ro(
          "format", [](const Read& self) { return of(self).format(); },
          "\"ONNX\", \"OpenVINO IR\", \"Caffe\", \"TensorFlow\" or \"oneDNN Graph\".")
      .def_prop_ro(
          "warnings", [](const Read& self) { return texts(of(self).warnings()); },
          nb::sig("def warnings(self) -> list[str]"), "Oddities in the file that the reader could cope with.")
      .def_prop_ro(
          "unsupported", [](const Read& self) { return texts(of(self).unsupported()); },
          nb::sig("def unsupported(self) -> list[str]"),
          "One line per unsupported operator type, with its nodes; compiling refuses when there are any.");
}

}  // namespace lamina::python
