#pragma once
/// IR files that are damaged.
#include <random>
#include <string>
#include <vector>

#include "tests/support/ir_text.h"

namespace lamina::testing {

/// Changed in one to three places; whole attributes' values become `words`.
std::string damaged(std::string xml, const std::vector<std::string>& words, std::mt19937& random);

/// Reads m.xml with that text (and m.bin, when it is there), and runs what reads: every Error of one line is
/// fine, everything else is not. True when it could be read.
bool survive(const TemporaryFolder& folder, const std::string& xml);

}  // namespace lamina::testing
