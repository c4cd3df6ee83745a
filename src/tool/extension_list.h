#pragma once
/// What libraries of custom layers offer, for `lamina ops`.
#include <nlohmann/json_fwd.hpp>

#include "tool/common.h"

namespace lamina::tool {

/// Prints what the libraries declare: the "extensions" of list_operators().
void say_extensions(const Common& c, const nlohmann::json& extensions);

}  // namespace lamina::tool
