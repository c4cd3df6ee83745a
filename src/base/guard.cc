#include "base/guard.h"

#include <new>
#include <stdexcept>

#include "base/cancellation.h"
#include "base/no_destructor.h"

namespace lamina {
namespace {

/// For when there is not even enough memory for a text.
const std::exception_ptr& no_memory() {
  static const ProcessLifetime error(
      [] { return std::make_exception_ptr(Error(ErrorCode::out_of_memory, "out of memory")); });
  return *error;
}

/// The exception is made while there is memory.
[[gnu::constructor]] void make_no_memory() { no_memory(); }

[[noreturn]] void fail_without_memory(std::string_view entry) try {
  fail(ErrorCode::out_of_memory, "{}: out of memory", entry);
} catch (const std::bad_alloc&) {
  std::rethrow_exception(no_memory());
}

}  // namespace

std::atomic<EntryHook> entry_hook = nullptr;

Entries& entries_here() noexcept {
  static thread_local Entries here;
  return here;
}

void rethrow_as_error(std::string_view entry) try {
  try {
    throw;
  } catch (const Error&) {
    throw;
  } catch (const FromUser& user) {
    if (entries_here().count > 1) throw;
    std::rethrow_exception(user.thrown);
  } catch (const Stopped&) {  // with work outside, of which a library's code is a part that has called this
    fail(ErrorCode::canceled, "{}: canceled", entry);
  } catch (const std::bad_alloc&) {
    fail_without_memory(entry);
  } catch (const std::exception& e) {
    fail(ErrorCode::internal, "{}: internal error: {}", entry, e.what());
  } catch (...) {
    fail(ErrorCode::internal, "{}: internal error: an exception of unknown type", entry);
  }
} catch (const std::bad_alloc&) {  // while the text was made
  std::rethrow_exception(no_memory());
}

}  // namespace lamina
