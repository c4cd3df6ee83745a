#include "quantise/noise_cells.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "draw/text.h"

namespace lamina {
namespace {

constexpr double kWidth = 240;

std::string bar(double part, const char* colour, const std::string& label) {
  return fmt::format(
      "<td><svg width=\"{}\" height=\"12\" role=\"img\" aria-label=\"{}\"><rect width=\"{:.1f}\" "
      "height=\"12\" rx=\"2\" fill=\"{}\"/></svg></td>",
      kWidth, label, std::clamp(part, 0.0, 1.0) * kWidth, colour);
}

}  // namespace

std::string decibel_text(double snr) {
  return std::isfinite(snr) ? fmt::format("{:.1f} dB", snr) : snr > 0 ? "exact" : "not comparable";
}

std::string share_text(double share) { return fmt::format("{:.1f}%", 100 * share); }

nlohmann::json finite_number(double x) { return std::isfinite(x) ? nlohmann::json(x) : nlohmann::json(); }

std::string html_cell(const std::string& text) { return "<td>" + escape_xml(text) + "</td>"; }

std::string snr_bar(double snr) {
  constexpr double kWhole = 60;
  const double part = std::isfinite(snr) ? snr / kWhole : snr > 0 ? 1 : 0;
  return bar(part, snr < 15 ? "#c8444f" : snr < 25 ? "#d6973b" : "#4d9a5b", decibel_text(snr));
}

std::string share_bar(double share) { return bar(share, "#2f6db5", share_text(share)); }

}  // namespace lamina
