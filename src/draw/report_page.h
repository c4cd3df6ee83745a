#pragma once
/// The frame of a report: a page for screen and paper, light and dark.
#include <string>

namespace lamina {

/// `body`: HTML whose drawings are made by drawn() of draw/graph_draw.h.
std::string report_page(const std::string& title, const std::string& body);

}  // namespace lamina
