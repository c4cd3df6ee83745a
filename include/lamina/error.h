#pragma once
/// The one exception of the public interface.
#include <stdexcept>
#include <string>

#include "lamina/export.h"

namespace lamina {

/// What kind of thing went wrong; the text says what was found, where, and what was wanted.
enum class ErrorCode {
  bad_file,     ///< a model or data file is missing, damaged or not what it claims to be
  bad_input,    ///< a tensor's name, type or shape does not fit the model
  bad_option,   ///< an option's name or value is not known
  unsupported,  ///< the model uses operators that lamina does not have (all are named)
  internal,     ///< an invariant of lamina's own is broken: a bug
};

/// Thrown by every function of lamina that fails. what() is one line.
class LAMINA_API Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& text) : std::runtime_error(text), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace lamina
