#pragma once
/// Settings as JSON.
#include <nlohmann/json_fwd.hpp>

#include "lamina/options.h"

namespace lamina::tool {

/// An object by key, with the members value, asked, reason and read_only.
nlohmann::json to_json(const std::vector<Property>& properties);

}  // namespace lamina::tool
