#pragma once
/// What `lamina check --against` says: lines, JSON, a page.
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "quantise/layer_noise.h"

namespace lamina::tool {

struct NoiseSubject {
  std::string quantised, f32;      ///< files
  std::vector<std::string> notes;  ///< what was made up, a sentence each
  bool random_inputs = false;      ///< some input was given no file
};

/// A table with a row for each layer, then what to leave out.
std::vector<std::string> lines_of(const NoiseReport& report);
nlohmann::json json_of(const NoiseSubject& subject, const NoiseReport& report);
/// Complete in itself: nothing from outside. A click on a heading sorts.
std::string html_of(const NoiseSubject& subject, const NoiseReport& report);

}  // namespace lamina::tool
