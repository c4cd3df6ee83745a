#pragma once
/// What `check` found wrong, as text for a test's failure.
#include <string>

#include "check/check.h"

namespace lamina::testing {

/// A line for each fault, which begins with a line feed; empty when nothing is wrong.
std::string text_of(const checking::Findings& found);

}  // namespace lamina::testing
