#pragma once
/// Errors of readers by what is wrong with the file, for those who tell users more than the text.
#include <string>

#include "base/error.h"

namespace lamina {

enum class FileProblem {
  other,
  no_layers,       ///< a Caffe network without any
  input_dims,      ///< other than 4 sizes per input of a Caffe network
  caffe_text,      ///< a Caffe network's structure cannot be read
  no_caffe_text,   ///< there are a Caffe network's weights alone
  caffe_weights,   ///< these cannot be read
  caffe_layer,     ///< a Caffe layer does not fit what it reads
  tensorflow,      ///< a TensorFlow graph cannot be read
  cycle,           ///< nodes wait for each other
  value_of_input,  ///< what an input was to be frozen to
};

struct ReadError : Error {
  ReadError(ErrorCode code, std::string_view text, FileProblem of_file = FileProblem::other)
      : Error(code, text), problem(of_file) {}
  /// The error with another text; `otherwise`: the problem if that error has none.
  ReadError(const Error& error, std::string_view text, FileProblem otherwise = FileProblem::other);
  FileProblem problem;
};

FileProblem problem_of(const Error& error);

/// What was wrong, without the label that Graph gives to a node without a name.
std::string reason_of(const Error& error);

template <class... A>
[[noreturn]] void fail_reading(FileProblem problem, fmt::format_string<A...> text, A&&... args) {
  throw ReadError(ErrorCode::bad_file, fmt::format(text, std::forward<A>(args)...), problem);
}

/// Runs `body`; errors of it without a problem have that one.
template <class F>
auto blaming(FileProblem problem, F body) try {
  return body();
} catch (const Error& e) {
  throw ReadError(e, e.what(), problem);
}

}  // namespace lamina
