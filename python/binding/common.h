#pragma once
/// What all files of the binding share.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <exception>
#include <string>

#include "lamina/lamina.h"

namespace nb = nanobind;

namespace lamina::python {

/// A str; bytes that are not UTF-8 become question marks, so that a damaged name in a file is still an error
/// message.
inline nb::object text(std::string_view of) {
  return nb::steal(PyUnicode_DecodeUTF8(of.data(), static_cast<Py_ssize_t>(of.size()), "replace"));
}

/// The name of the object's type, for errors.
inline std::string class_name(nb::handle of) {
  return nb::cast<std::string>(nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(of.ptr()))).attr("__name__"));
}

// Each file registers its part of the module.
void bind_errors(nb::module_& m);
void bind_model(nb::module_& m);
void bind_compiled(nb::module_& m);
void bind_request(nb::module_& m);
void bind_calls(nb::module_& m);
void bind_draw(nb::module_& m);
void bind_check(nb::module_& m);
void bind_explain(nb::module_& m);
void bind_arrays(nb::module_& m);
void bind_benchmark(nb::module_& m);
void bind_offline(nb::module_& m);

}  // namespace lamina::python
