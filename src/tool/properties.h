#pragma once
/// Settings as JSON.
#include <nlohmann/json_fwd.hpp>

#include "lamina/options.h"

namespace lamina::tool {

/// By key: value, asked, reason, read_only.
nlohmann::json to_json(const std::vector<Property>& properties);

}  // namespace lamina::tool
