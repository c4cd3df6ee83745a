#pragma once
/// Errors that users of the Model Optimizer look up by their number in its FAQ.
#include "base/error.h"
#include "lamina/optimize.h"

namespace lamina {

template <class... A>
[[noreturn]] void fail_faq(ErrorCode code, int question, fmt::format_string<A...> text, A&&... args) {
  throw FaqError(code, question, fmt::format(text, std::forward<A>(args)...));
}

/// The question that an error belongs to; 0: none.
int question_of(const Error& error);

}  // namespace lamina
