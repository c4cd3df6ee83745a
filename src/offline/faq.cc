#include "offline/faq.h"

#include "formats/read_error.h"

namespace lamina {

FaqError::FaqError(ErrorCode code, int question, std::string_view text)
    : Error(code, text), question_(question) {}

FaqError::~FaqError() = default;

int question_of(const Error& error) {
  if (const auto* known = dynamic_cast<const FaqError*>(&error)) return known->question();
  if (error.code() == ErrorCode::unsupported) return 45;
  switch (problem_of(error)) {
    case FileProblem::no_layers:
      return 7;
    case FileProblem::input_dims:
      return 8;
    case FileProblem::caffe_text:
      return 11;
    case FileProblem::no_caffe_text:
      return 20;
    case FileProblem::caffe_layer:
      return 38;
    case FileProblem::tensorflow:
      return 43;
    case FileProblem::value_of_input:
      return 59;
    case FileProblem::cycle:
      return 97;
    case FileProblem::caffe_weights:
      return 103;
    case FileProblem::other:
      return 0;
  }
  return 0;
}

}  // namespace lamina
