#pragma once
/// What libraries of custom layers offer, for `lamina ops`.
#include <nlohmann/json_fwd.hpp>

#include "tool/common.h"

namespace lamina::tool {

/// Prints what the libraries of --extensions declare, and gives it as JSON; an empty list without any. Throws
/// as load_extension() does.
nlohmann::json list_extensions(const Common& common);

}  // namespace lamina::tool
