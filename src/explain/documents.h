#pragma once
/// Explanations as JSON: the documents of `lamina explain --json`.
#include <nlohmann/json_fwd.hpp>

#include "lamina/explain.h"

namespace lamina {

/// Everything but the machine, the layers and the verdict.
nlohmann::json to_json(const Explanation& explanation);
/// A row for each of these layers. `timed`: there are times.
nlohmann::json to_json(const std::vector<const LayerExplanation*>& layers, bool timed);
nlohmann::json to_json(const ModelVerdict& verdict);
nlohmann::json to_json(const RuleAnswer& answer);

}  // namespace lamina
