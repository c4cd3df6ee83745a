#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace lamina {

/// The text of a document; names in it come from files and may be no UTF-8.
template <class Json>
std::string json_text(const Json& document) {
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace lamina
