#include "tool/properties.h"

#include <nlohmann/json.hpp>

namespace lamina::tool {

nlohmann::json to_json(const std::vector<Property>& properties) {
  auto out = nlohmann::json::object();
  for (const auto& p : properties)
    out[p.key] = {{"value", p.value}, {"asked", p.asked}, {"reason", p.reason}, {"read_only", p.read_only}};
  return out;
}

}  // namespace lamina::tool
