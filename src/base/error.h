#pragma once
/// Raising errors: one line, "where: what was found, what was wanted".
#include <fmt/format.h>

#include "lamina/error.h"

namespace lamina {

template <class... A>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<A...> text, A&&... args) {
  throw Error(code, fmt::format(text, std::forward<A>(args)...));
}

/// A broken invariant of our own. Checked in every build.
#define LAMINA_CHECK(condition, ...)                                                                 \
  do {                                                                                               \
    if (!(condition)) ::lamina::fail(::lamina::ErrorCode::internal, "internal error: " __VA_ARGS__); \
  } while (false)

/// Errors that say nothing about what was tried: who tries something else after an error passes them on.
inline bool ends_the_work(ErrorCode code) {
  return code == ErrorCode::out_of_memory || code == ErrorCode::over_limit || code == ErrorCode::canceled;
}

/// Yes, or no with the reason.
class [[nodiscard]] Verdict {
 public:
  static Verdict yes() { return {}; }
  template <class... A>
  static Verdict no(fmt::format_string<A...> text, A&&... args) {
    Verdict v;
    v.reason_ = fmt::format(text, std::forward<A>(args)...);
    v.ok_ = false;
    return v;
  }
  explicit operator bool() const { return ok_; }
  const std::string& reason() const { return reason_; }

 private:
  bool ok_ = true;
  std::string reason_;
};

}  // namespace lamina
