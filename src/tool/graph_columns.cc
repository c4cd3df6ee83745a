/// Long graphs in columns: cut between ranks where few lines pass, each part laid out on its own.
#include <algorithm>
#include <cmath>
#include <map>

#include "tool/graph_layout.h"

namespace lamina::tool {
namespace {

using Port = std::pair<std::size_t, std::size_t>;  // node and its port: one line, whoever reads it

constexpr std::size_t kMostLines = 6;  ///< that may go from column to column at one place
constexpr std::size_t kMostColumns = 40;
constexpr double kMargin = 14, kLane = 7;
constexpr double kPage = 1000;  // lower graphs are not cut unless asked for columns

class Columns {
 public:
  Columns(const std::vector<LayoutNode>& nodes, const std::vector<LayoutEdge>& edges,
          const LayoutOptions& options, const Layout& whole)
      : nodes_(nodes), edges_(edges), options_(options), whole_(whole) {
    for (const auto& e : edges_) {
      auto& last = last_rank_[{e.from, e.port}];
      last = std::max(last, whole_.ranks[e.to]);
    }
  }

  /// First ranks of the columns after the first: those that give columns of about the same height and cut few
  /// lines. Empty when there is no place to cut.
  std::vector<std::size_t> cuts(std::size_t columns) const {
    const auto ranks = 1 + *std::max_element(whole_.ranks.begin(), whole_.ranks.end());
    std::vector<double> top(ranks + 1, whole_.height);
    for (std::size_t n = 0; n < nodes_.size(); ++n)
      top[whole_.ranks[n]] = std::min(top[whole_.ranks[n]], whole_.nodes[n].y);
    const auto lines = lines_above(ranks);
    const double wanted = whole_.height / static_cast<double>(columns);
    // least[k][r]: badness of the best k columns above rank r.
    constexpr double kNever = 1e18;
    std::vector least(columns + 1, std::vector<double>(ranks + 1, kNever));
    std::vector before(columns + 1, std::vector<std::size_t>(ranks + 1, 0));
    least[0][0] = 0;
    for (std::size_t k = 1; k <= columns; ++k)
      for (std::size_t r = 1; r <= ranks; ++r) {
        if (r < ranks && lines[r] > kMostLines) continue;
        const double cut = r < ranks ? 0.02 * static_cast<double>(lines[r]) : 0;
        for (std::size_t b = 0; b < r; ++b) {
          if (least[k - 1][b] == kNever) continue;
          const double off = (top[r] - top[b]) / wanted - 1;
          const double badness = least[k - 1][b] + off * off + cut;
          if (badness < least[k][r]) least[k][r] = badness, before[k][r] = b;
        }
      }
    std::vector<std::size_t> out;
    if (least[columns][ranks] == kNever) return out;
    for (std::size_t k = columns, r = ranks; k > 1; --k) out.push_back(r = before[k][r]);
    std::reverse(out.begin(), out.end());
    return out;
  }

  Layout build(const std::vector<std::size_t>& cuts) {
    out_.ranks = whole_.ranks;
    out_.nodes.resize(nodes_.size());
    out_.edges.resize(edges_.size());
    const auto end = 1 + *std::max_element(whole_.ranks.begin(), whole_.ranks.end());
    for (std::size_t i = 0; i <= cuts.size(); ++i)
      add_column(i == 0 ? 0 : cuts[i - 1], i < cuts.size() ? cuts[i] : end, i == cuts.size());
    normalize();
    return std::move(out_);
  }

 private:
  /// Lines that pass the upper border of each rank.
  std::vector<std::size_t> lines_above(std::size_t ranks) const {
    std::vector<std::size_t> out(ranks, 0);
    for (const auto& [port, last] : last_rank_)
      for (auto r = whole_.ranks[port.first] + 1; r <= last; ++r) ++out[r];
    return out;
  }
  bool passes(const Port& port, std::size_t rank) const {
    return whole_.ranks[port.first] < rank && last_rank_.at(port) >= rank;
  }

  /// One column: ranks [first, end) with a point above for each line that comes in, and one below for each
  /// that goes on.
  struct Column {
    std::vector<LayoutNode> boxes;
    std::vector<LayoutEdge> lines;
    std::vector<std::size_t> ranks;
    std::map<std::size_t, std::size_t> local;                 // node of the graph -> box
    std::map<Port, std::size_t> in, out;                      // points
    std::vector<std::pair<std::size_t, std::size_t>> pieces;  // line, edge of the graph

    std::size_t add(LayoutNode box, std::size_t rank) {
      boxes.push_back(box);
      ranks.push_back(rank);
      return boxes.size() - 1;
    }
  };

  void add_column(std::size_t first, std::size_t end, bool last) {
    Column c;
    const std::size_t above = first > 0 ? 1 : 0;
    for (std::size_t n = 0; n < nodes_.size(); ++n)
      if (whole_.ranks[n] >= first && whole_.ranks[n] < end)
        c.local[n] = c.add(nodes_[n], whole_.ranks[n] - first + above);
    for (const auto& [port, ignored] : last_rank_) {
      if (first > 0 && passes(port, first)) c.in[port] = c.add({1, 1}, 0);
      if (!last && passes(port, end)) c.out[port] = c.add({1, 1}, end - first + above);
    }
    std::map<Port, std::size_t> through;  // the line to the point below, shared by all edges of a port
    for (std::size_t e = 0; e < edges_.size(); ++e) {
      const auto& edge = edges_[e];
      if (whole_.ranks[edge.to] < first || whole_.ranks[edge.from] >= end) continue;
      const Port port{edge.from, edge.port};
      const bool goes_on = c.local.count(edge.to) == 0;
      if (const auto it = through.find(port); goes_on && it != through.end()) {
        c.pieces.emplace_back(it->second, e);
        continue;
      }
      if (goes_on) through[port] = c.lines.size();
      c.pieces.emplace_back(c.lines.size(), e);
      c.lines.push_back(piece_of(c, edge, port));
    }
    place(c);
  }

  static LayoutEdge piece_of(const Column& c, const LayoutEdge& edge, const Port& port) {
    auto line = edge;
    if (const auto it = c.local.find(edge.from); it != c.local.end())
      line.from = it->second;
    else
      line.from = c.in.at(port), line.from_offset = 0, line.port = 0;
    if (const auto it = c.local.find(edge.to); it != c.local.end())
      line.to = it->second;
    else
      line.to = c.out.at(port), line.to_offset = 0;
    return line;
  }

  void place(const Column& c) {
    auto options = options_;
    options.ranks = c.ranks;
    const auto layout = lay_out(c.boxes, c.lines, options);
    const double x = next_x_;
    for (const auto& [node, box] : c.local) out_.nodes[node] = {layout.nodes[box].x + x, layout.nodes[box].y};
    for (const auto& [line, edge] : c.pieces) {
      auto& path = out_.edges[edge];
      auto points = layout.edges[line];
      for (auto& p : points) p.x += x;
      if (!path.empty()) lead_over(path, points.front(), lanes_.at({edges_[edge].from, edges_[edge].port}));
      path.insert(path.end(), points.begin(), points.end());
    }
    lanes_.clear();
    for (const auto& [port, ignored] : c.out) lanes_.emplace(port, lanes_.size());
    right_ = x + layout.width;
    next_x_ = right_ + 2 * kMargin + 16 + kLane * static_cast<double>(lanes_.size());
  }

  /// From the foot of a column through the gutter to the head of the next.
  void lead_over(std::vector<Point>& path, Point to, std::size_t lane) const {
    const double shift = kLane * static_cast<double>(lane);
    const auto from = path.back();
    const double below = from.y + kMargin + shift, above = -kMargin - shift,
                 beside = right_ + kMargin + shift;
    for (const Point p : {Point{from.x, below}, {beside, below}, {beside, above}, {to.x, above}, to}) {
      path.push_back(path.back());
      path.push_back(p);
    }
  }

  void normalize() {
    double top = 0;
    for (const auto& path : out_.edges)
      for (const auto& p : path) top = std::min(top, p.y);
    for (auto& n : out_.nodes) n.y -= top;
    for (auto& path : out_.edges)
      for (auto& p : path) {
        p.y -= top;
        out_.height = std::max(out_.height, p.y);
      }
    for (std::size_t n = 0; n < nodes_.size(); ++n)
      out_.height = std::max(out_.height, out_.nodes[n].y + nodes_[n].height);
    out_.width = right_;
  }

  const std::vector<LayoutNode>& nodes_;
  const std::vector<LayoutEdge>& edges_;
  const LayoutOptions& options_;
  const Layout& whole_;
  std::map<Port, std::size_t> last_rank_;
  std::map<Port, std::size_t> lanes_;  // of the lines that leave the column before
  Layout out_;
  double next_x_ = 0, right_ = 0;
};

}  // namespace

Layout lay_out_in_columns(const std::vector<LayoutNode>& nodes, const std::vector<LayoutEdge>& edges,
                          std::size_t columns, double ratio, const LayoutOptions& options) {
  auto whole = lay_out(nodes, edges, options);
  const bool downwards = std::all_of(edges.begin(), edges.end(),
                                     [&](const auto& e) { return whole.ranks[e.from] < whole.ranks[e.to]; });
  if (columns == 1 || nodes.empty() || !downwards) return whole;
  if (columns == 0)
    columns =
        whole.height <= kPage
            ? 1
            : static_cast<std::size_t>(std::lround(std::sqrt(ratio * whole.height / (whole.width + 40))));
  if (columns < 2) return whole;
  Columns builder(nodes, edges, options, whole);
  for (auto n = std::min<std::size_t>(columns, kMostColumns); n > 1; --n)
    if (const auto cuts = builder.cuts(n); !cuts.empty()) {
      auto layout = builder.build(cuts);
      return layout.height < 0.7 * whole.height ? layout : whole;
    }
  return whole;
}

}  // namespace lamina::tool
