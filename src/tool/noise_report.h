#pragma once
/// The report of `lamina check --against`: as lines, as JSON, as an HTML page.
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "quantise/layer_noise.h"

namespace lamina::tool {

struct NoiseSubject {
  std::string quantised, f32;      ///< files
  std::vector<std::string> notes;  ///< how inputs were made and changed, a sentence each
  bool random_inputs = false;      ///< no input was given
};

/// A table with a row for each layer, then what to leave out.
std::vector<std::string> lines_of(const NoiseReport& report);
nlohmann::json json_of(const NoiseSubject& subject, const NoiseReport& report);
/// A page that loads nothing from elsewhere. A click on a heading sorts the table of layers.
std::string html_of(const NoiseSubject& subject, const NoiseReport& report);

}  // namespace lamina::tool
