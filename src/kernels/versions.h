#pragma once
#include <string>

namespace lamina {
/// "3.2.0 (TBB)" and the hash it was built from.
std::string onednn_version();
}  // namespace lamina
