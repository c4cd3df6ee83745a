#pragma once
/// One node of a drawing as a box: its texts, its size, its SVG.
#include "draw/drawing.h"

namespace lamina {

/// A drawn graph, to be placed somewhere.
struct Scene {
  double width = 0, height = 0;
  std::string svg;
};

class Box {
 public:
  /// `read`: which outputs have readers. `inner`: the node's bodies, drawn.
  Box(const DrawingNode& node, const std::vector<bool>& read, std::vector<Scene> inner);

  /// Width and height include the strip below the box with the types of the outputs.
  double width() const { return 2 * std::max(box_width_ / 2, strip_half_); }
  double height() const { return box_height_ + strip_height_; }
  /// Where the line of an output begins, from the middle of the box.
  double port_offset(std::size_t port) const { return offsets_.at(port); }
  /// `x`, `y`: upper left corner of the whole; `id`: unique in the file.
  std::string svg(double x, double y, const std::string& id) const;

 private:
  void measure_texts();
  void measure_inner();
  void measure_ports(const std::vector<bool>& read);
  std::string frame(double x, double y) const;
  std::string body(double x, double y) const;
  std::string port_labels(double middle, double y) const;

  const DrawingNode& node_;
  std::vector<Scene> inner_;
  std::string name_;
  std::vector<std::string> rows_, stages_;
  double box_width_ = 0, box_height_ = 0, text_height_ = 0;
  double strip_half_ = 0, strip_height_ = 0;
  std::vector<double> offsets_;
  std::vector<std::pair<double, std::string>> labels_;  // offset and text
};

/// Colour of a group of a comparison.
std::string group_colour(int group);
/// Colour of a share of the time, 0 to 1.
std::string heat_colour(double heat);
/// "12.5", "12"
std::string short_number(double value);

}  // namespace lamina
