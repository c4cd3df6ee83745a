#pragma once
/// Work on so many threads.
#include <functional>

namespace lamina {

/// Calls it in the calling thread, where loops have so many threads, the caller's included; with one thread
/// none other is ever made.
void on_threads(int threads, const std::function<void()>& body);

}  // namespace lamina
