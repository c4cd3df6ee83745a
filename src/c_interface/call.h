#pragma once
/// What stands around every function of lamina/c.h: nothing is thrown out of it, its error can be asked for.
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "lamina/c.h"

namespace lamina::c_interface {

/// Thrown through lamina when a callback of the caller says that it failed, or throws itself.
class CallbackFailed : public std::exception {
 public:
  explicit CallbackFailed(std::string text) : text_(std::move(text)) {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

lamina_c_status status_of(ErrorCode code) noexcept;

/// Notes the exception that is being handled as the thread's last error. Inside a handler only.
lamina_c_status note_error(const char* entry) noexcept;
const char* last_error() noexcept;

/// What an exception is to the caller of the C interface.
struct Failure {
  lamina_c_status status = LAMINA_C_OK;
  std::string text;
};
Failure failure_of(const std::exception_ptr& error);

/// LAMINA_C_OK, or the body's exception as a status. `entry` is the function's name.
template <class F>
lamina_c_status call(const char* entry, F&& body) noexcept {
  try {
    std::forward<F>(body)();
    return LAMINA_C_OK;
  } catch (...) {
    return note_error(entry);
  }
}

/// The object that a function is called on.
template <class T>
T& object(T* handle, const char* what) {
  if (handle == nullptr) fail(ErrorCode::bad_call, "the {} is null", what);
  return *handle;
}
/// What an argument points to.
template <class T>
T& argument(T* pointer, const char* what) {
  if (pointer == nullptr) fail(ErrorCode::bad_input, "{} is a null pointer", what);
  return *pointer;
}
inline const char* text_argument(const char* text, const char* what) { return &argument(text, what); }
/// A list of texts, none of them null.
std::vector<std::string> texts_of(const char* const* texts, std::size_t count, const char* what);

/// call() of a function that gives a new handle: `make` returns a unique pointer to it.
template <class T, class F>
lamina_c_status call_making(const char* entry, T** made, F&& make) noexcept {
  if (made != nullptr) *made = nullptr;
  return call(entry, [&] {
    argument(made, "where to put the new handle");
    *made = std::forward<F>(make)().release();
  });
}

/// Copies as much of the text as fits, with a zero behind it.
void copy_text(const std::string& text, char* buffer, std::size_t capacity, std::size_t* length);

}  // namespace lamina::c_interface
