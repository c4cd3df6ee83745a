#pragma once
/// From lamina::Error to the exceptions of the package.
#include "common.h"

namespace lamina::python {

/// "bad_input": the attribute `code` of exceptions.
const char* name_of(ErrorCode code) noexcept;
/// Raises the package's exception of that code.
void raise(const Error& error);

/// A lamina::Error of formatted text, in the library's way.
[[noreturn]] inline void fail(ErrorCode code, const std::string& what) { throw Error(code, what); }

}  // namespace lamina::python
