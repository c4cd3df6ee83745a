#pragma once
/// The one exception of the public interface.
#include <stdexcept>
#include <string_view>

#include "lamina/export.h"

namespace lamina {

/// The kind of an error; its text says what was found, where, and what was wanted.
enum class ErrorCode {
  bad_file,       ///< a model or data file is missing, damaged or not what it claims to be
  bad_input,      ///< a tensor, its name, type, shape or memory is not what was wanted
  bad_option,     ///< an option's name is not known, or its value is not accepted
  unsupported,    ///< operators that lamina does not have (their types are named), or a compiled model of
                  ///< another version or for other instructions
  bad_call,       ///< the object cannot do this now: it was moved from, or nothing has run yet
  out_of_memory,  ///< memory could not be allocated; the objects concerned stay as they were
  internal,       ///< an internal error of lamina: a bug
  busy,           ///< an inference of the request is under way, or the call would wait for itself
  canceled,   ///< the inference was canceled, or fork(), exit() or shutdown() ended it; or the reading or the
              ///< compilation was canceled (ReadOptions::stop, Options::stop)
  extension,  ///< a library of custom layers has failed (the text names it and has its message)
  over_limit,  ///< a limit of Options or ReadOptions was reached (its key is named)
};

/// Thrown by every function of lamina that fails. Apart from it, only exceptions of the user's own callbacks
/// are thrown, and std::bad_alloc when vectors and strings of the interface are copied. what() is one line of
/// at most 300 characters without control characters: long names inside are shortened, with their length.
class LAMINA_API Error : public std::runtime_error {
 public:
  Error(ErrorCode code, std::string_view text);
  Error(const Error&) noexcept = default;
  Error& operator=(const Error&) noexcept = default;
  ~Error() override;
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace lamina
