#pragma once
/// Work on so many threads.
#include <tbb/task_arena.h>

#include <functional>

namespace lamina {

/// Brings the helpers of an arena of so many threads (the caller's included) about: threads inherit what
/// their maker blocks, and those that oneTBB makes in a caller's loop would take the application's signals.
/// Nothing to do where there are that many of them already. With one thread none is ever made.
void bring_helpers(tbb::task_arena& arena, int threads);

/// Calls it in the calling thread, where loops have so many threads, the caller's included; with one thread
/// none other is ever made.
void on_threads(int threads, const std::function<void()>& body);

}  // namespace lamina
