#include "errors.h"

namespace lamina::python {

const char* name_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::bad_file:
      return "bad_file";
    case ErrorCode::bad_input:
      return "bad_input";
    case ErrorCode::bad_option:
      return "bad_option";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::bad_call:
      return "bad_call";
    case ErrorCode::out_of_memory:
      return "out_of_memory";
    case ErrorCode::busy:
      return "busy";
    case ErrorCode::canceled:
      return "canceled";
    case ErrorCode::extension:
      return "extension";
    case ErrorCode::over_limit:
      return "over_limit";
    case ErrorCode::internal:
      break;
  }
  return "internal";
}

void raise(const Error& error) {
  const auto classes = nb::module_::import_("lamina.errors").attr("BY_CODE");
  const nb::object type = classes[name_of(error.code())];
  PyErr_SetObject(type.ptr(), text(error.what()).ptr());
}

void bind_errors(nb::module_& m) {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      raise(error);
    }
  });
  m.def(
      "error_codes",
      [] {
        nb::list names;
        for (int i = 0; i <= static_cast<int>(ErrorCode::over_limit); ++i)
          names.append(name_of(static_cast<ErrorCode>(i)));
        return names;
      },
      nb::sig("def error_codes() -> list[str]"),
      "The codes of all errors, in the order of lamina::ErrorCode.");
}

}  // namespace lamina::python
