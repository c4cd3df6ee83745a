#pragma once
/// IR files that are damaged.
#include <string>

#include "tests/support/ir_text.h"

namespace lamina::testing {

/// Reads m.xml with that text (and m.bin, when it is there), and runs what reads: every Error of one line is
/// fine, everything else is not. True when it could be read.
bool survive(const TemporaryFolder& folder, const std::string& xml);

}  // namespace lamina::testing
