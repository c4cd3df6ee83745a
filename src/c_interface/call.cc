#include "c_interface/call.h"

#include <array>
#include <cstring>
#include <new>
#include <string_view>

namespace lamina::c_interface {
namespace {

/// Room for a path, which an error may begin with, and 300 characters. It needs no destructor, so that
/// threads that live on do not keep the library from being closed.
thread_local std::array<char, 6144> last_text{};

void note(std::string_view entry, std::string_view text) noexcept {
  auto* at = last_text.data();
  const auto add = [&](std::string_view piece) {
    const auto left = static_cast<std::size_t>(last_text.data() + last_text.size() - 1 - at);
    const auto count = piece.size() < left ? piece.size() : left;
    std::memcpy(at, piece.data(), count);
    at += count;
  };
  if (!entry.empty()) add(entry), add(": ");
  add(text);
  *at = '\0';
}

}  // namespace

lamina_c_status status_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::bad_file:
      return LAMINA_C_BAD_FILE;
    case ErrorCode::bad_input:
      return LAMINA_C_BAD_INPUT;
    case ErrorCode::bad_option:
      return LAMINA_C_BAD_OPTION;
    case ErrorCode::unsupported:
      return LAMINA_C_UNSUPPORTED;
    case ErrorCode::bad_call:
      return LAMINA_C_BAD_CALL;
    case ErrorCode::out_of_memory:
      return LAMINA_C_OUT_OF_MEMORY;
    case ErrorCode::internal:
      return LAMINA_C_INTERNAL;
    case ErrorCode::busy:
      return LAMINA_C_BUSY;
    case ErrorCode::canceled:
      return LAMINA_C_CANCELED;
    case ErrorCode::extension:
      return LAMINA_C_EXTENSION;
    case ErrorCode::over_limit:
      return LAMINA_C_OVER_LIMIT;
  }
  return LAMINA_C_INTERNAL;
}

lamina_c_status note_error(const char* entry) noexcept {
  try {
    throw;
  } catch (const Error& e) {
    note("", e.what());
    return status_of(e.code());
  } catch (const CallbackFailed& e) {
    note("", e.what());
    return LAMINA_C_CALLBACK;
  } catch (const std::bad_alloc&) {
    note(entry, "out of memory");
    return LAMINA_C_OUT_OF_MEMORY;
  } catch (const std::exception& e) {
    note(entry, e.what());
    return LAMINA_C_INTERNAL;
  } catch (...) {
    note(entry, "an exception of unknown type");
    return LAMINA_C_INTERNAL;
  }
}

const char* last_error() noexcept { return last_text.data(); }

Failure failure_of(const std::exception_ptr& error) {
  if (!error) return {};
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return {status_of(e.code()), e.what()};
  } catch (const CallbackFailed& e) {
    return {LAMINA_C_CALLBACK, e.what()};
  } catch (const std::exception& e) {
    return {LAMINA_C_INTERNAL, e.what()};
  } catch (...) {
    return {LAMINA_C_INTERNAL, "an exception of unknown type"};
  }
}

std::vector<std::string> texts_of(const char* const* texts, std::size_t count, const char* what) {
  std::vector<std::string> out;
  if (count != 0) argument(texts, what);
  for (std::size_t i = 0; i < count; ++i) out.emplace_back(text_argument(texts[i], what));
  return out;
}

void copy_text(const std::string& text, char* buffer, std::size_t capacity, std::size_t* length) {
  if (capacity != 0) {
    argument(buffer, "the buffer");
    const auto count = text.size() < capacity ? text.size() : capacity - 1;
    std::memcpy(buffer, text.data(), count);
    buffer[count] = '\0';
  }
  if (length != nullptr) *length = text.size();
}

}  // namespace lamina::c_interface
