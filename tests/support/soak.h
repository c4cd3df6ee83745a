#pragma once
/// Tests for `make soak`: damaged files for LAMINA_SOAK_MINUTES.
#include <functional>
#include <random>

namespace lamina::testing {

/// Calls `step`, which says whether its file could be read, until the minutes are over or the test has
/// failed; without LAMINA_SOAK_MINUTES the test is skipped. The seed is LAMINA_SEED, or a fresh one, and
/// printed.
void soak_until_failure(const std::function<bool(std::mt19937&)>& step);

}  // namespace lamina::testing
