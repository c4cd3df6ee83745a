#pragma once
/// Progress of long work.
#include <functional>
#include <string_view>

namespace lamina {

/// Gets the current stage ("rewriting", "choosing kernels", "packing weights") and how much of it is done,
/// from 0 to 1. It is called in each thread that compiles, or that plans for new shapes before a run: in
/// several threads at the same time if several do so. The work waits for the callback. An exception from it
/// ends the work, and so does a stop that it requests (Options::stop). It may use other models, and run() of
/// this one; a run() that needs the plan which is being made throws Error(busy).
using ProgressCallback = std::function<void(std::string_view stage, double done)>;

}  // namespace lamina
