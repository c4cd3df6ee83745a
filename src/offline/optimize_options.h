#pragma once
/// The public options of the offline optimiser, and the request of a conversion that they make.
#include "lamina/optimize.h"
#include "offline/convert.h"

namespace lamina {

/// Throws FaqError, Error(bad_option). Errors call options as on a command line.
ConversionRequest request_of(const OptimizeOptions& options);

/// The text as the caller knows options.
std::string in_callers_words(std::string_view text, bool dashes);
/// The error as FaqError where it has a question. Throws it.
[[noreturn]] void rethrow_with_question(const Error& error, bool dashes);

/// The body's result. Its errors have the number of a question of the FAQ where there is one, and call
/// options as the caller knows them.
template <class F>
auto with_questions(bool dashes, F&& body) {
  try {
    return std::forward<F>(body)();
  } catch (const Error& e) {
    rethrow_with_question(e, dashes);
  }
}

}  // namespace lamina
