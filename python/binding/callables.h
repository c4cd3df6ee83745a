#pragma once
/// Functions of Python's that the library calls while it works.
#include "common.h"

namespace lamina::python {

/// `callable`: f(stage, done), which the caller keeps alive, or None. Called without the GIL.
inline ProgressCallback progress_of(nb::handle callable) {
  if (callable.is_none()) return {};
  return [callable](std::string_view stage, double done) {
    const nb::gil_scoped_acquire held;
    callable(text(stage), done);
  };
}

}  // namespace lamina::python
