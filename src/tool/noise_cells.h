#pragma once
/// Noise in decibel, as lines, cells of a page and JSON have it.
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace lamina::tool {

/// "34.1 dB"; without noise "exact"; "not comparable" where there is no number.
std::string decibel_text(double snr);
/// JSON has neither infinity nor NaN: null for these.
nlohmann::json finite_number(double x);
/// An HTML cell with escaped text.
std::string html_cell(const std::string& text);
/// An HTML cell with a bar to 60 dB, the better the longer; red where little is left of the signal.
std::string snr_bar(double snr);
/// An HTML cell with a bar for a part of a whole, 0 to 1.
std::string share_bar(double share);

}  // namespace lamina::tool
