#include "draw/graph_box.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "draw/text.h"

namespace lamina {
namespace {

constexpr double kTitle = 12, kText = 10.5, kPortText = 9.5;
constexpr double kHeader = 20, kLine = 13.5, kPad = 8, kStrip = 15, kInnerTitle = 16;
constexpr double kLeast = 104, kMost = 220;

using Form = DrawingNode::Form;

}  // namespace

std::string short_number(double value) {
  auto text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

std::string group_colour(int group) {
  static constexpr std::array kPastels{"#cfe3f7", "#fde2c0", "#d3efd0", "#f7d0d6", "#e2d6f3", "#f3efb8",
                                       "#c9eeec", "#f2d3ea", "#dfe6c9", "#e3d8cd", "#d2d9ee", "#fbd9c9"};
  return kPastels[static_cast<std::size_t>(group) % kPastels.size()];
}

std::string heat_colour(double heat) {
  const auto mix = [&](int to) { return static_cast<int>(std::lround(255 + (to - 255) * heat)); };
  return fmt::format("#{:02x}{:02x}{:02x}", mix(255), mix(150), mix(80));
}

Box::Box(const DrawingNode& node, const std::vector<bool>& read, std::vector<Scene> inner)
    : node_(node), inner_(std::move(inner)) {
  measure_texts();
  measure_inner();
  measure_ports(read);
}

void Box::measure_texts() {
  const double corner = node_.corner.empty() ? 0 : text_width(node_.corner, kText) + 12;
  const double title = text_width(node_.title, kTitle, node_.form == Form::box) + corner;
  if (node_.form != Form::box) {
    box_width_ = std::clamp(title, 24.0, kMost) + 2 * kPad + 6;
    box_height_ = text_height_ = node_.form == Form::pill ? 22 : 17;
    return;
  }
  name_ = shortened_to_width(node_.name, kMost, kText);
  for (const auto& row : node_.rows) rows_.push_back(shortened_to_width(row, kMost, kText));
  for (auto& line : wrapped(node_.lines, ", ", kMost, kText, 3)) rows_.push_back(std::move(line));
  auto stages = node_.stages;
  if (!stages.empty() && node_.title != "Elementwise") stages[0] = "+ " + stages[0];
  stages_ = wrapped(stages, " \xE2\x86\x92 ", kMost, kText, 3);
  double content = std::max(title, text_width(name_, kText));
  for (const auto* list : {&rows_, &stages_})
    for (const auto& line : *list) content = std::max(content, text_width(line, kText));
  box_width_ = std::clamp(content, kLeast, std::max(kMost, title)) + 2 * kPad;
  const auto rows = (name_.empty() ? 0 : 1) + rows_.size() + stages_.size();
  box_height_ = text_height_ =
      kHeader + 4 + kLine * static_cast<double>(rows) + 3 + (stages_.empty() ? 0 : 5);
}

void Box::measure_inner() {
  if (inner_.empty()) return;
  double width = kPad, height = 0;
  for (const auto& s : inner_) {
    width += s.width + kPad;
    height = std::max(height, s.height);
  }
  box_width_ = std::max(box_width_, width);
  box_height_ += height + kInnerTitle + kPad;
}

/// One label per output; many outputs, or outputs of one type, share one.
void Box::measure_ports(const std::vector<bool>& read) {
  const auto n = node_.ports.size();
  std::vector<std::size_t> seen;
  for (std::size_t p = 0; p < n; ++p)
    if (p < read.size() && read[p]) seen.push_back(p);
  offsets_.assign(n, 0);
  if (seen.empty()) return;
  strip_height_ = kStrip;
  const bool same =
      std::all_of(seen.begin(), seen.end(), [&](auto p) { return node_.ports[p] == node_.ports[seen[0]]; });
  double widest = 0;
  for (const auto p : seen) widest = std::max(widest, text_width(node_.ports[p], kPortText));
  const bool shared = seen.size() > 1 && (same || seen.size() > 4);
  const double step = shared ? 14 : widest + 16;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    offsets_[seen[i]] = (static_cast<double>(i) - static_cast<double>(seen.size() - 1) / 2) * step;
    if (!shared) labels_.emplace_back(offsets_[seen[i]], node_.ports[seen[i]]);
  }
  const double last = offsets_[seen.back()];
  if (shared)
    labels_.emplace_back(last, fmt::format("{} \xC3\x97 {}{}", seen.size(), node_.ports[seen[0]],
                                           same ? "" : ", \xE2\x80\xA6"));
  strip_half_ = last + 6 + text_width(labels_.back().second, kPortText);
  box_width_ = std::max(box_width_, 2 * last + 20);
}

std::string Box::frame(double x, double y) const {
  const auto colour = node_.faded ? "#b9bec5" : std::string(colour_of(node_.hue));
  const auto fill = node_.heat >= 0    ? heat_colour(node_.heat)
                    : node_.group >= 0 ? group_colour(node_.group)
                    : node_.faded      ? "#f4f4f4"
                                       : "#ffffff";
  const auto radius = node_.form == Form::box ? 5 : box_height_ / 2;
  auto out =
      fmt::format(R"(<rect x="{}" y="{}" width="{}" height="{}" rx="{}" fill="{}" stroke="{}"{}/>)",
                  short_number(x), short_number(y), short_number(box_width_), short_number(box_height_),
                  short_number(radius), node_.form == Form::pill ? colour : fill, colour,
                  node_.form == Form::small || node_.faded ? R"( stroke-dasharray="3 2")" : "");
  if (node_.form == Form::box)
    out += fmt::format(R"(<path d="M{} {}v-{}a5 5 0 0 1 5 -5h{}a5 5 0 0 1 5 5v{}z" fill="{}"/>)",
                       short_number(x), short_number(y + kHeader), short_number(kHeader - 5),
                       short_number(box_width_ - 10), short_number(kHeader - 5), colour);
  if (node_.heat > 0 && node_.form != Form::pill) {  // its time, beside that of the slowest
    constexpr double kBar = 3;
    const double inset = node_.form == Form::box ? 2 : box_height_ / 2;
    const double length = std::max(0.5, (box_width_ - 2 * inset) * std::min(node_.heat, 1.0));
    out += fmt::format(R"(<path class="b" d="M{} {}h{}v{}h-{}z" fill="#b3350b"/>)", short_number(x + inset),
                       short_number(y + box_height_ - kBar - 1), short_number(length), short_number(kBar),
                       short_number(length));
  }
  return out;
}

std::string Box::body(double x, double y) const {
  std::string out;
  const auto text = [&](const char* style, double tx, double ty, const std::string& words) {
    out += fmt::format(R"(<text class="{}" x="{}" y="{}">{}</text>)", style, short_number(tx),
                       short_number(ty), escape_xml(words));
  };
  const double right = x + box_width_ - kPad;
  if (node_.form != Form::box) {
    const bool pill = node_.form == Form::pill;
    const auto words = shortened_to_width(node_.title, kMost, kTitle);
    if (node_.corner.empty()) {
      text(pill ? "p m" : "s m", x + box_width_ / 2, y + box_height_ / 2 + 4, words);
    } else {
      text(pill ? "p" : "s", x + kPad + 2, y + box_height_ / 2 + 4, words);
      text("s r", right - 2, y + box_height_ / 2 + 4, node_.corner);
    }
    return out;
  }
  text("t", x + kPad, y + 14.5, node_.title);
  if (!node_.corner.empty()) text("c r", right, y + 14.5, node_.corner);
  double line = y + kHeader + 4 + 10;
  if (!name_.empty()) text("o", x + kPad, line, name_), line += kLine;
  for (const auto& words : rows_) text("a", x + kPad, line, words), line += kLine;
  if (!stages_.empty()) {
    line += 5;
    out += fmt::format(R"(<path class="d" d="M{} {}h{}"/>)", short_number(x), short_number(line - 12.5),
                       short_number(box_width_));
    for (const auto& words : stages_) text("f", x + kPad, line, words), line += kLine;
  }
  return out;
}

std::string Box::port_labels(double middle, double y) const {
  std::string out;
  for (std::size_t p = 0; p < offsets_.size() && strip_height_ > 0; ++p)
    if (p == 0 || offsets_[p] != 0 || offsets_.size() == 1)
      out += fmt::format(R"(<path class="e" d="M{} {}v{}"/>)", short_number(middle + offsets_[p]),
                         short_number(y), short_number(strip_height_));
  for (const auto& [offset, words] : labels_)
    out += fmt::format(R"(<text class="y" x="{}" y="{}">{}</text>)", short_number(middle + offset + 4),
                       short_number(y + 11), escape_xml(words));
  return out;
}

std::string Box::svg(double x, double y, const std::string& id) const {
  const double middle = x + width() / 2, left = middle - box_width_ / 2;
  auto out = fmt::format("<g class=\"n\" id=\"{}\" data-name=\"{}\" data-op=\"{}\"{}><title>{}</title>", id,
                         escape_xml(node_.name.empty() ? node_.title : node_.name), escape_xml(node_.title),
                         node_.group >= 0 ? fmt::format(" data-g=\"{}\"", node_.group) : "",
                         escape_xml(node_.tooltip, true));
  out += frame(left, y) + body(left, y) + "</g>\n";
  double inner_x = left + kPad;
  for (std::size_t i = 0; i < inner_.size(); ++i) {
    const double top = y + text_height_;
    out += fmt::format(R"(<text class="a" x="{}" y="{}">{}</text>)", short_number(inner_x),
                       short_number(top + 10), escape_xml(node_.bodies[i].title));
    out += fmt::format(
        R"(<rect x="{}" y="{}" width="{}" height="{}" rx="4" fill="#ffffff" fill-opacity="0.75" stroke="#c9ced4"/>)",
        short_number(inner_x), short_number(top + kInnerTitle), short_number(inner_[i].width),
        short_number(inner_[i].height));
    out += fmt::format("<g transform=\"translate({} {})\">\n{}</g>\n", short_number(inner_x),
                       short_number(top + kInnerTitle), inner_[i].svg);
    inner_x += inner_[i].width + kPad;
  }
  return out + port_labels(middle, y + box_height_) + (strip_height_ > 0 ? "\n" : "");
}

}  // namespace lamina
