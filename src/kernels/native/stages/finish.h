#pragma once
#include <optional>

#include "kernels/epilogue.h"
#include "kernels/native/simd/finish.h"

namespace lamina {

/// The activation that registers apply for a stage, or nothing.
std::optional<Finish> finish_of(const Stage& stage);

}  // namespace lamina
