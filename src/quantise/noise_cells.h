#pragma once
/// Noise in decibel and shares of it, as texts, JSON numbers and HTML cells.
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace lamina {

/// "34.1 dB"; without noise "exact"; "not comparable" where there is no number.
std::string decibel_text(double snr);
/// "12.3%" for a part of a whole, 0 to 1.
std::string share_text(double share);
/// The number; null for infinity and NaN, which JSON does not have.
nlohmann::json finite_number(double x);
/// An HTML cell with escaped text.
std::string html_cell(const std::string& text);
/// An HTML cell with a bar up to 60 dB: the longer the better, red for much noise.
std::string snr_bar(double snr);
/// An HTML cell with a bar for a part of a whole, 0 to 1.
std::string share_bar(double share);

}  // namespace lamina
