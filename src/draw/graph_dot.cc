/// Drawings as DOT, for graphviz and its like.
#include "base/table_text.h"
#include "draw/graph_draw.h"
#include "draw/text.h"

namespace lamina {
namespace {

std::string words_of(const DrawingNode& n) {
  std::string out = n.title + (n.corner.empty() ? "" : "  " + n.corner);
  const auto add = [&](const std::string& line) { out += "\n" + line; };
  if (!n.name.empty()) add(shortened(n.name, 48));
  for (const auto& line : n.lines) add(line);
  for (const auto& stage : n.stages) add("+ " + stage);
  return out;
}

void write(const Drawing& p, const std::string& prefix, const std::string& indent, std::string& out) {
  for (std::size_t i = 0; i < p.nodes.size(); ++i) {
    const auto& n = p.nodes[i];
    out += fmt::format("{}{}{} [label={} color=\"{}\"{} tooltip={}];\n", indent, prefix, i,
                       quote_dot(words_of(n)), colour_of(n.hue),
                       n.form == DrawingNode::Form::pill ? " style=\"rounded,filled,bold\"" : "",
                       quote_dot(n.tooltip));
    for (std::size_t b = 0; b < n.bodies.size(); ++b) {
      const auto inner = fmt::format("{}{}_{}_", prefix, i, b);
      out += fmt::format("{}subgraph cluster_{} {{\n{}  label={};\n", indent, inner, indent,
                         quote_dot(n.title + " " + n.name + ", " + n.bodies[b].title));
      write(n.bodies[b], inner, indent + "  ", out);
      out += indent + "}\n";
    }
  }
  for (const auto& e : p.edges) {
    const auto& ports = p.nodes[e.from].ports;
    out += fmt::format("{}{}{} -> {}{} [label={} tooltip={}{}];\n", indent, prefix, e.from, prefix, e.to,
                       quote_dot(e.port < ports.size() ? ports[e.port] : ""), quote_dot(e.tooltip),
                       e.light ? " style=dashed" : "");
  }
}

}  // namespace

std::string to_dot(const std::vector<Drawing>& drawings) {
  std::string title = drawings[0].title;
  for (const auto& note : drawings[0].notes) title += "\n" + note;
  std::string out = fmt::format(
      "digraph model {{\n  label={};\n  labelloc=t;\n  node [shape=box style=\"rounded\" fontname=Helvetica "
      "fontsize=10];\n  edge [fontname=Helvetica fontsize=9 color=\"#98a2ad\"];\n",
      quote_dot(title));
  for (std::size_t i = 0; i < drawings.size(); ++i) {
    const auto prefix = std::string(1, static_cast<char>('n' + i));
    if (drawings.size() > 1)
      out += fmt::format("  subgraph cluster_{} {{\n  label={};\n", prefix, quote_dot(drawings[i].heading));
    write(drawings[i], prefix, "  ", out);
    if (drawings.size() > 1) out += "  }\n";
  }
  return out + "}\n";
}

}  // namespace lamina
