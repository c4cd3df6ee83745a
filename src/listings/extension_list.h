#pragma once
/// What libraries of custom layers offer.
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace lamina {

/// What each of the libraries declares; an empty list without any. Throws as load_extension() does.
nlohmann::json extensions_json(const std::vector<std::string>& paths);

}  // namespace lamina
