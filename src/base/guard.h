#pragma once
/// What stands at every entry of the public interface: nothing but Error leaves it.
#include <atomic>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>

#include "base/exiting.h"
#include "base/floating_point.h"

namespace lamina {

/// For tests: called at each guarded entry with its name, and may throw. Null: none.
using EntryHook = void (*)(std::string_view entry);
extern std::atomic<EntryHook> entry_hook;

/// What the user's own code threw on its way through ours, in the place of which it is thrown by the
/// outermost entry.
struct FromUser {
  std::exception_ptr thrown;
};

/// Throws what is being handled anew as Error: Error as it is, failed allocations as out_of_memory, what the
/// user's code threw as it was, every other exception as internal. Inside a handler only.
[[noreturn]] void rethrow_as_error(std::string_view entry);

/// What the calling thread is in of the public interface, since the user's code was last called.
struct Entries {
  int count = 0;
  bool exit_noticed = false;  ///< notice_exit() was called for this thread
  FloatingPoint
      callers;  ///< how the caller of the outermost one computes; the standard way where there is none
};
Entries& entries_here() noexcept;

/// Inside the outermost one the thread computes in the standard way, whatever mode its caller is in.
class InEntry {
 public:
  InEntry() noexcept {
    if (here_.count++ > 0) return;
    if (!std::exchange(here_.exit_noticed, true)) notice_exit();
    standard_.emplace();
    here_.callers = standard_->before();
  }
  ~InEntry() { --here_.count; }
  InEntry(const InEntry&) = delete;
  InEntry& operator=(const InEntry&) = delete;

 private:
  Entries& here_ = entries_here();
  std::optional<StandardFloatingPoint> standard_;
};

/// The body's result; its exceptions as Error. `entry` is the function as its documentation calls it:
/// "Request::run".
template <class F>
decltype(auto) guarded(std::string_view entry, F&& body) {
  const InEntry here;
  try {
    if (const auto hook = entry_hook.load(std::memory_order_relaxed)) hook(entry);
    return std::forward<F>(body)();
  } catch (...) {
    rethrow_as_error(entry);
  }
}

}  // namespace lamina
