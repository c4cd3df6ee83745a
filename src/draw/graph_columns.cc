/// Long graphs in columns: cut between ranks where few lines pass, each part laid out on its own. A line that
/// goes on leaves its column at the foot, goes up the gutter beside it, along above the columns, and down to
/// the heads of those where it is read.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>

#include "draw/graph_layout.h"

namespace lamina {
namespace {

using LinePort = std::pair<std::size_t, std::size_t>;  // node and its port: one line, whoever reads it

constexpr std::size_t kMostLines = 12;  ///< most lines from column to column at one place
constexpr std::size_t kMostColumns = 40;
constexpr double kMargin = 14, kLane = 7;
constexpr double kCut = 0.04;         ///< a line cut is as bad as columns a fifth too high or too low
constexpr double kPageHeight = 1000;  // lower graphs are not cut unless asked for columns

class Columns {
 public:
  Columns(const std::vector<LayoutNode>& nodes, const std::vector<LayoutEdge>& edges,
          const LayoutOptions& options, const GraphLayout& whole)
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
        const double cut = r < ranks ? kCut * static_cast<double>(lines[r]) : 0;
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

  GraphLayout build(const std::vector<std::size_t>& cuts) {
    out_.ranks = whole_.ranks;
    out_.nodes.resize(nodes_.size());
    out_.edges.resize(edges_.size());
    firsts_ = cuts;
    firsts_.insert(firsts_.begin(), 0);
    find_long_lines();
    for (std::size_t i = 0; i < firsts_.size(); ++i) add_column(i);
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
  std::size_t column_of(std::size_t node) const {
    const auto after = std::upper_bound(firsts_.begin(), firsts_.end(), whole_.ranks[node]);
    return static_cast<std::size_t>(after - firsts_.begin()) - 1;
  }

  /// A line that is read in other columns than its own.
  struct LongLine {
    std::size_t from = 0, last = 0;   ///< columns
    std::set<std::size_t> read;       ///< columns
    std::size_t gutter = 0, top = 0;  ///< its lanes beside the column `from` and above all columns
    double beside = 0;                ///< x in the gutter, once the column stands
  };

  void find_long_lines() {
    long_.clear();
    for (const auto& e : edges_)
      if (const auto from = column_of(e.from), to = column_of(e.to); from != to) {
        auto& line = long_[{e.from, e.port}];
        line.from = from;
        line.last = std::max(line.last, to);
        line.read.insert(to);
      }
    // Short ways first: they lie within the longer ones. A lane is free again behind the end of a line.
    std::vector<LongLine*> order;
    for (auto& [port, line] : long_) order.push_back(&line);
    std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
      return std::pair(a->last - a->from, a->from) < std::pair(b->last - b->from, b->from);
    });
    std::vector<std::size_t> gutters(firsts_.size(), 0);
    std::vector<std::vector<const LongLine*>> lanes;
    for (auto* line : order) {
      line->gutter = gutters[line->from]++;
      const auto crosses = [&](const LongLine* other) {
        return line->from <= other->last && other->from <= line->last;
      };
      while (line->top < lanes.size() &&
             std::any_of(lanes[line->top].begin(), lanes[line->top].end(), crosses))
        ++line->top;
      lanes.resize(std::max(lanes.size(), line->top + 1));
      lanes[line->top].push_back(line);
    }
    gutters_ = std::move(gutters);
  }

  /// One column: its ranks, with a point above for each line that is read here and comes from elsewhere, and
  /// one below for each that begins here and goes on.
  struct Column {
    std::vector<LayoutNode> boxes;
    std::vector<LayoutEdge> lines;
    std::vector<std::size_t> ranks;
    std::map<std::size_t, std::size_t> local;                 // node of the graph -> box
    std::map<LinePort, std::size_t> in, out;                  // points
    std::vector<std::pair<std::size_t, std::size_t>> pieces;  // line, edge of the graph

    std::size_t add(LayoutNode box, std::size_t rank) {
      boxes.push_back(box);
      ranks.push_back(rank);
      return boxes.size() - 1;
    }
  };

  void add_column(std::size_t index) {
    Column c;
    const auto first = firsts_[index];
    const auto end = index + 1 < firsts_.size() ? firsts_[index + 1] : SIZE_MAX;
    const std::size_t above = index > 0 ? 1 : 0;
    std::size_t foot = 0;
    for (std::size_t n = 0; n < nodes_.size(); ++n)
      if (whole_.ranks[n] >= first && whole_.ranks[n] < end) {
        c.local[n] = c.add(nodes_[n], whole_.ranks[n] - first + above);
        foot = std::max(foot, c.ranks.back() + 1);
      }
    for (const auto& [port, line] : long_) {
      if (line.read.count(index)) c.in[port] = c.add({1, 1}, 0);
      if (line.from == index) c.out[port] = c.add({1, 1}, foot);
    }
    std::map<LinePort, std::size_t> through;  // the line to the point below, shared by all edges of a port
    for (std::size_t e = 0; e < edges_.size(); ++e) {
      const auto& edge = edges_[e];
      const bool begins = c.local.count(edge.from), ends = c.local.count(edge.to);
      if (!begins && !ends) continue;
      const LinePort port{edge.from, edge.port};
      if (const auto it = through.find(port); !ends && it != through.end()) {
        c.pieces.emplace_back(it->second, e);
        continue;
      }
      if (!ends) through[port] = c.lines.size();
      c.pieces.emplace_back(c.lines.size(), e);
      c.lines.push_back(piece_of(c, edge, port));
    }
    place(c, index);
  }

  static LayoutEdge piece_of(const Column& c, const LayoutEdge& edge, const LinePort& port) {
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

  void place(const Column& c, std::size_t index) {
    auto options = options_;
    options.ranks = c.ranks;
    const auto layout = lay_out(c.boxes, c.lines, options);
    const double x = next_x_;
    for (const auto& [node, box] : c.local) out_.nodes[node] = {layout.nodes[box].x + x, layout.nodes[box].y};
    for (const auto& [line, edge] : c.pieces) {
      auto& path = out_.edges[edge];
      auto points = layout.edges[line];
      for (auto& p : points) p.x += x;
      if (!path.empty()) lead_over(path, points.front(), long_.at({edges_[edge].from, edges_[edge].port}));
      path.insert(path.end(), points.begin(), points.end());
    }
    right_ = x + layout.width;
    for (const auto& [port, box] : c.out)
      long_.at(port).beside = right_ + kMargin + kLane * static_cast<double>(long_.at(port).gutter);
    next_x_ = right_ + 2 * kMargin + 16 + kLane * static_cast<double>(gutters_[index]);
  }

  /// Leads a line from the foot of its column to the head of another.
  static void lead_over(std::vector<Point>& path, Point to, const LongLine& line) {
    const auto from = path.back();
    const double below = from.y + kMargin + kLane * static_cast<double>(line.gutter);
    const double above = -kMargin - kLane * static_cast<double>(line.top);
    for (const Point p :
         {Point{from.x, below}, {line.beside, below}, {line.beside, above}, {to.x, above}, to}) {
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
  const GraphLayout& whole_;
  std::map<LinePort, std::size_t> last_rank_;
  std::vector<std::size_t> firsts_;  // ranks with which columns begin
  std::map<LinePort, LongLine> long_;
  std::vector<std::size_t> gutters_;  // lanes beside each column
  GraphLayout out_;
  double next_x_ = 0, right_ = 0;
};

}  // namespace

GraphLayout lay_out_in_columns(const std::vector<LayoutNode>& nodes, const std::vector<LayoutEdge>& edges,
                               std::size_t columns, double ratio, const LayoutOptions& options) {
  auto whole = lay_out(nodes, edges, options);
  const bool downwards = std::all_of(edges.begin(), edges.end(),
                                     [&](const auto& e) { return whole.ranks[e.from] < whole.ranks[e.to]; });
  if (columns == 1 || nodes.empty() || !downwards) return whole;
  if (columns == 0)
    columns =
        whole.height <= kPageHeight
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

}  // namespace lamina
