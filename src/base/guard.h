#pragma once
/// What stands at every entry of the public interface: nothing but Error leaves it.
#include <atomic>
#include <string_view>
#include <utility>

namespace lamina {

/// For tests: called at each guarded entry with its name, and may throw. Null: none.
using EntryHook = void (*)(std::string_view entry);
extern std::atomic<EntryHook> entry_hook;

/// Throws what is being handled anew as Error: Error as it is, failed allocations as out_of_memory, every
/// other exception as internal. Inside a handler only.
[[noreturn]] void rethrow_as_error(std::string_view entry);

/// The body's result; its exceptions as Error. `entry` is the function as its documentation calls it:
/// "Request::run".
template <class F>
decltype(auto) guarded(std::string_view entry, F&& body) {
  try {
    if (const auto hook = entry_hook.load(std::memory_order_relaxed)) hook(entry);
    return std::forward<F>(body)();
  } catch (...) {
    rethrow_as_error(entry);
  }
}

}  // namespace lamina
