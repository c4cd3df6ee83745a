/// Drawings as SVG.
#include "draw/graph_draw.h"

#include <algorithm>
#include <set>

#include "draw/graph_box.h"
#include "draw/graph_layout.h"
#include "draw/text.h"

namespace lamina {
namespace {

constexpr double kBorder = 16, kBetween = 48, kPadding = 10;

constexpr std::string_view kStyle = R"(
text{font-family:Helvetica,Arial,"Liberation Sans","DejaVu Sans",sans-serif;font-size:10.5px;fill:#23282e}
.h{font-size:18px;font-weight:bold}
.t{font-size:12px;font-weight:bold;fill:#ffffff}
.c{fill:#ffffff}
.p{font-size:12px;fill:#ffffff}
.s{font-size:10.5px}
.o{fill:#59616a}
.f{fill:#8c3a12}
.y{font-size:9.5px;fill:#5f6973}
.m{text-anchor:middle}
.r{text-anchor:end}
.e{fill:none;stroke:#98a2ad;stroke-width:1.2}
.l{stroke:#c3b48f;stroke-dasharray:4 2}
.d{stroke:#d9b9a6;stroke-width:0.8}
)";

constexpr std::string_view kArrowMarker =
    "<marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" "
    "orient=\"auto\" markerUnits=\"userSpaceOnUse\"><path d=\"M0 0.5L8 4L0 7.5z\" "
    "fill=\"#7c8793\"/></marker>";

/// Vertical lines and curves between them, as the layout means its points. Lines in a row are one: those that
/// pass a thousand ranks would have a thousand points.
std::string path_data(const std::vector<Point>& points) {
  std::string x = short_number(points[0].x), y = short_number(points[0].y), out = "M" + x + " " + y;
  double from = 0, to = points[0].y;  // the line at hand
  bool line = false;
  const auto end_line = [&] {
    if (line) out += fmt::format("L{} {}", x, y);
    line = false;
  };
  for (std::size_t i = 1; i < points.size(); ++i) {
    const auto next_x = short_number(points[i].x), next_y = short_number(points[i].y);
    if (next_x == x && next_y == y) continue;  // a step of no length has no direction, which arrows need
    if (next_x == x) {
      if (line && (to - from) * (points[i].y - to) < 0) end_line();
      if (!line) from = to;
      line = true;
    } else {
      end_line();
      const auto middle = short_number((points[i - 1].y + points[i].y) / 2);
      out += i % 2 == 1 ? fmt::format("L{} {}", next_x, next_y)
                        : fmt::format("C{} {} {} {} {} {}", x, middle, next_x, middle, next_x, next_y);
    }
    x = next_x, y = next_y, to = points[i].y;
  }
  end_line();
  return out;
}

Scene draw(const Drawing& p, const std::string& prefix, std::size_t columns, double ratio);

std::vector<Box> boxes_of(const Drawing& p, const std::string& prefix) {
  std::vector<std::vector<bool>> read(p.nodes.size());
  for (std::size_t n = 0; n < p.nodes.size(); ++n) read[n].resize(p.nodes[n].ports.size(), false);
  for (const auto& e : p.edges)
    if (e.port < read[e.from].size()) read[e.from][e.port] = true;
  std::vector<Box> out;
  for (std::size_t n = 0; n < p.nodes.size(); ++n) {
    std::vector<Scene> inner;
    for (std::size_t b = 0; b < p.nodes[n].bodies.size(); ++b)
      inner.push_back(draw(p.nodes[n].bodies[b], fmt::format("{}{}_{}_", prefix, n, b), 1, 1));
    out.emplace_back(p.nodes[n], read[n], std::move(inner));
  }
  return out;
}

Scene draw(const Drawing& p, const std::string& prefix, std::size_t columns, double ratio) {
  const auto boxes = boxes_of(p, prefix);
  std::vector<LayoutNode> sizes;
  std::vector<LayoutEdge> lines;
  for (const auto& b : boxes) sizes.push_back({b.width(), b.height()});
  for (const auto& e : p.edges)
    lines.push_back({e.from, e.to, e.port,
                     e.port < p.nodes[e.from].ports.size() ? boxes[e.from].port_offset(e.port) : 0, 0});
  const auto layout = lay_out_in_columns(sizes, lines, columns, ratio);
  Scene s{layout.width + 2 * kPadding, layout.height + 2 * kPadding, {}};
  s.svg = fmt::format("<g transform=\"translate({} {})\">\n", kPadding, kPadding);
  for (std::size_t e = 0; e < lines.size(); ++e) {
    if (layout.edges[e].empty()) continue;
    const auto& edge = p.edges[e];
    s.svg += fmt::format(
        "<path class=\"{}\" data-f=\"{}{}\" data-t=\"{}{}\" marker-end=\"url(#a)\" "
        "d=\"{}\"><title>{}</title></path>\n",
        edge.light ? "e l" : "e", prefix, edge.from, prefix, edge.to, path_data(layout.edges[e]),
        escape_xml(edge.tooltip, true));
  }
  for (std::size_t n = 0; n < boxes.size(); ++n)
    s.svg += boxes[n].svg(layout.nodes[n].x, layout.nodes[n].y, prefix + std::to_string(n));
  s.svg += "</g>\n";
  return s;
}

void collect_hues(const Drawing& p, std::map<Hue, std::size_t>& count) {
  for (const auto& n : p.nodes) {
    ++count[n.hue];
    for (const auto& b : n.bodies) collect_hues(b, count);
  }
}

std::vector<std::string> split(const std::string& text, std::string_view separator) {
  std::vector<std::string> out{text};
  for (auto at = text.find(separator); at != std::string::npos; at = out.back().find(separator)) {
    out.push_back(out.back().substr(at + separator.size()));
    out[out.size() - 2].resize(at);
  }
  return out;
}

/// Title, notes and the meaning of colours, at most `width` wide.
Scene heading(const std::vector<Drawing>& drawings, double width) {
  Scene s{width, 24, {}};
  s.svg = fmt::format("<text class=\"h\" x=\"0\" y=\"18\">{}</text>\n", escape_xml(drawings[0].title));
  for (const auto& note : drawings[0].notes)
    for (const auto& line : wrapped(split(note, "; "), "; ", width, 10.5, 6)) {
      s.height += 15;
      s.svg +=
          fmt::format("<text x=\"0\" y=\"{}\">{}</text>\n", short_number(s.height - 3), escape_xml(line));
    }
  std::map<Hue, std::size_t> hues;
  for (const auto& p : drawings) collect_hues(p, hues);
  double x = 0;
  s.height += 22;
  const auto item = [&](const std::string& mark, double mark_width, const std::string& words) {
    const double needed = mark_width + 6 + text_width(words, 10.5) + 16;
    if (x > 0 && x + needed > width) x = 0, s.height += 18;
    s.svg += fmt::format("<g transform=\"translate({} {})\">{}<text x=\"{}\" y=\"10\">{}</text></g>\n",
                         short_number(x), short_number(s.height - 12), mark, short_number(mark_width + 5),
                         escape_xml(words));
    x += needed;
  };
  for (const auto& [hue, count] : hues)
    item(fmt::format(R"(<rect width="12" height="12" rx="3" fill="{}"/>)", colour_of(hue)), 12,
         fmt::format("{} ({})", name_of(hue), count));
  for (const auto& p : drawings)
    if (p.hottest > 0) {
      std::string bar;
      for (int i = 0; i < 10; ++i)
        bar += fmt::format(R"(<rect x="{}" width="8" height="12" fill="{}"/>)", 8 * i, heat_colour(i / 9.0));
      item(bar + R"(<rect width="80" height="12" fill="none" stroke="#c9ced4"/>)", 80,
           fmt::format("share of the time: 0 to {:.1f} %", 100 * p.hottest));
    }
  const auto light = [](const Drawing& p) {
    return std::any_of(p.edges.begin(), p.edges.end(), [](const auto& e) { return e.light; });
  };
  if (std::any_of(drawings.begin(), drawings.end(), light))
    item(R"(<path class="e l" d="M0 6h24"/>)", 24, "small integers");
  s.height += 10;
  return s;
}

}  // namespace

Scene drawn(const Drawing& drawing, const std::string& prefix) { return draw(drawing, prefix, 1, 1); }
std::string_view drawing_style() { return kStyle; }
std::string_view arrow_marker() { return kArrowMarker; }

std::string to_svg(const std::vector<Drawing>& drawings, const PageOptions& options) {
  std::vector<Scene> scenes;
  double width = 0, height = 0;
  const auto count = static_cast<double>(drawings.size());
  for (std::size_t i = 0; i < drawings.size(); ++i) {
    scenes.push_back(draw(drawings[i], fmt::format("{}", static_cast<char>('n' + i)), options.columns,
                          options.ratio / count));
    width += scenes.back().width + (i ? kBetween : 0);
    height = std::max(height, scenes.back().height);
  }
  const double page = std::max(width, 560.0);
  const auto head = heading(drawings, page);
  const double subtitles = drawings.size() > 1 ? 22 : 0;
  const auto w = short_number(page + 2 * kBorder),
             h = short_number(head.height + subtitles + height + 2 * kBorder);
  std::string out = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" "
      "height=\"{}\" "
      "viewBox=\"0 0 {} {}\">\n<title>{}</title>\n<style>{}</style>\n",
      w, h, w, h, escape_xml(drawings[0].title), kStyle);
  out += fmt::format("<defs>{}</defs>\n", kArrowMarker);
  out += fmt::format("<rect width=\"{}\" height=\"{}\" fill=\"#ffffff\"/>\n", w, h);
  out += fmt::format("<g transform=\"translate({} {})\">\n{}</g>\n", kBorder, kBorder, head.svg);
  double x = kBorder + (page - width) / 2;
  for (std::size_t i = 0; i < scenes.size(); ++i) {
    const double top = kBorder + head.height;
    if (subtitles > 0)
      out += fmt::format("<text class=\"h\" x=\"{}\" y=\"{}\">{}</text>\n", short_number(x + 8),
                         short_number(top + 16), escape_xml(drawings[i].heading));
    out += fmt::format("<g transform=\"translate({} {})\">\n{}</g>\n", short_number(x),
                       short_number(top + subtitles), scenes[i].svg);
    x += scenes[i].width + kBetween;
  }
  return out + "</svg>\n";
}

}  // namespace lamina
