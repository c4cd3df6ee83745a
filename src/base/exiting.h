#pragma once
/// exit() destroys static objects in one thread while others may still use their contents. Its order:
/// is_exiting() becomes true, the user's static objects are destroyed, all work pauses for good
/// (base/quiescence.h), tables of libraries are destroyed. Thread-safe.
#include <memory>

namespace lamina {

/// From now on exit() makes is_exiting() true before it destroys static objects that are there now. Called
/// when a thread first uses lamina, and for each model and request. Nothing from the 4096th call on, which a
/// process with so many of them does not need.
void notice_exit() noexcept;
bool is_exiting() noexcept;
/// Keeps an object while exit() runs: another thread may use the static object that owned it.
void keep_at_exit(const std::shared_ptr<const void>& what) noexcept;

}  // namespace lamina
