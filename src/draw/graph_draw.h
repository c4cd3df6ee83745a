#pragma once
/// Drawings as files: SVG (no scripts, nothing from outside), DOT, and HTML with the SVG inside.
#include "draw/drawing.h"
#include "draw/graph_box.h"

namespace lamina {

struct PageOptions {
  std::size_t columns = 0;  ///< of long graphs, at most; 0: as many as fit a page
  double ratio = 1.4;       ///< width : height of that page
};

/// One drawing, or several side by side.
std::string to_svg(const std::vector<Drawing>& drawings, const PageOptions& options = {});
std::string to_dot(const std::vector<Drawing>& drawings);
/// A drawing alone, for a page of many: its ids begin with `prefix`, its classes are those of
/// drawing_style(), arrow_marker() must be in the page once.
Scene drawn(const Drawing& drawing, const std::string& prefix);
std::string_view drawing_style();
std::string_view arrow_marker();
/// The SVG with search, zoom, and a panel with all about the node under the pointer.
std::string to_html(const std::vector<Drawing>& drawings, const PageOptions& options = {});

}  // namespace lamina
