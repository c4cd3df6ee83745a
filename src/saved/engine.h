#pragma once
#include <string>

namespace lamina {

/// What writes and reads compiled models: "0.1.0, build 0123456789ab, oneDNN 3.2.0 (TBB) 8f6c...". They fit
/// the very same one only.
const std::string& engine_name();

}  // namespace lamina
