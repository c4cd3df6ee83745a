#pragma once
/// How far a long piece of work is.
#include <functional>
#include <string_view>

namespace lamina {

/// Gets what is being done ("rewriting", "choosing kernels", "packing weights") and how much of that is done,
/// from 0 to 1. Comes in the thread that compiles, or that runs what must be planned for new shapes first: in
/// several at once where several do so. What it takes delays the work, what it throws ends it, and so does a
/// stop that it requests (Options::stop). It may use other models, and run() of this one where that does not
/// ask for what is being made: else Error(busy).
using ProgressCallback = std::function<void(std::string_view stage, double done)>;

}  // namespace lamina
