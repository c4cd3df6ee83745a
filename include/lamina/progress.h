#pragma once
/// How far a long piece of work is.
#include <functional>
#include <string_view>

namespace lamina {

/// Gets what is being done ("rewriting", "choosing kernels", "packing weights") and how much of that is done,
/// from 0 to 1. Comes in the thread that compiles, or that runs what must be planned for new shapes first;
/// what it takes delays the work.
using ProgressCallback = std::function<void(std::string_view stage, double done)>;

}  // namespace lamina
