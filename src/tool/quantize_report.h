#pragma once
/// The report of `lamina quantize`: lines, JSON, a page.
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "quantise/quantise.h"

namespace lamina::tool {

struct QuantizeReport {
  std::string model, output;  ///< files
  const QuantiseRequest& request;
  const QuantisedModel& result;
  std::size_t bytes_before = 0, bytes_after = 0;  ///< of the model's files
  bool measures_others = false;                   ///< with samples that were not calibrated with
  std::vector<std::string> notes = {};
};

std::vector<std::string> lines_of(const QuantizeReport& report);
nlohmann::json json_of(const QuantizeReport& report);
/// The page, without scripts or external files.
std::string html_of(const QuantizeReport& report);

}  // namespace lamina::tool
