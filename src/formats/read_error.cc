#include "formats/read_error.h"

#include "graph/graph.h"

namespace lamina {
namespace {

/// What a reader was given is a file, whatever is wrong in it.
ErrorCode of_file(ErrorCode code) { return code == ErrorCode::bad_input ? ErrorCode::bad_file : code; }

}  // namespace

ReadError::ReadError(const Error& error, std::string_view text, FileProblem otherwise)
    : Error(of_file(error.code()), text), problem(problem_of(error)) {
  if (problem == FileProblem::other) problem = otherwise;
}

FileProblem problem_of(const Error& error) {
  const auto* known = dynamic_cast<const ReadError*>(&error);
  return known ? known->problem : FileProblem::other;
}

std::string reason_of(const Error& error) {
  const auto* of_node = dynamic_cast<const NodeError*>(&error);
  return of_node ? of_node->reason : error.what();
}

}  // namespace lamina
