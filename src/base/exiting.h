#pragma once
/// exit() destroys static objects in one thread while others may still use what they had. Its order:
/// is_exiting(), the user's static objects go, all that runs stands still for good (base/standstill.h),
/// tables of libraries go. Thread-safe.
#include <memory>

namespace lamina {

/// From now on exit() makes is_exiting() true before it destroys static objects that are there now. Nothing
/// from the 4096th call on, which a process with so many objects does not need.
void notice_exit() noexcept;
bool is_exiting() noexcept;
/// While that is so, it is not destroyed: another thread may use the static object that had it.
void keep_at_exit(const std::shared_ptr<const void>& what) noexcept;

}  // namespace lamina
