/// x coordinates after Brandes and Koepf, "Fast and Simple Horizontal Coordinate Assignment" (2001): cells
/// are joined to vertical blocks four ways (upwards or downwards, from the left or the right), each way is
/// packed, and every cell gets the mean of the middle two of its four places.
#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <unordered_set>

#include "draw/graph_cells.h"

namespace lamina {
namespace {

using Rows = std::vector<std::vector<std::uint32_t>>;
constexpr std::uint32_t kNone = UINT32_MAX;

std::vector<std::size_t> positions(const Rows& rows, std::size_t cells) {
  std::vector<std::size_t> out(cells);
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) out[row[i]] = i;
  return out;
}

/// Lines that cross the inner part of a long line: the long line stays straight, they bend.
class Conflicts {
 public:
  explicit Conflicts(const Cells& c) : c_(c), position_(positions(c.ranks, c.cells.size())) {
    for (std::size_t r = 0; r + 1 < c.ranks.size(); ++r) scan(c.ranks[r], c.ranks[r + 1]);
  }
  bool has(std::uint32_t a, std::uint32_t b) const { return pairs_.count(key(a, b)) != 0; }

 private:
  static std::uint64_t key(std::uint32_t a, std::uint32_t b) {
    return (std::uint64_t{std::min(a, b)} << 32) | std::max(a, b);
  }
  std::uint32_t inner(std::uint32_t cell) const {
    if (!c_.cells[cell].line) return kNone;
    for (const auto& e : c_.up[cell])
      if (c_.cells[e.cell].line) return e.cell;
    return kNone;
  }
  void scan(const std::vector<std::uint32_t>& upper, const std::vector<std::uint32_t>& lower) {
    std::size_t low = 0, done = 0;
    for (std::size_t i = 0; i < lower.size(); ++i) {
      const auto other = inner(lower[i]);
      if (other == kNone && i + 1 != lower.size()) continue;
      const auto high = other == kNone ? upper.size() : position_[other];
      for (; done <= i; ++done)
        for (const auto& e : c_.up[lower[done]]) {
          const auto p = position_[e.cell];
          const bool both = c_.cells[e.cell].line && c_.cells[lower[done]].line;
          if ((p < low || p > high) && !both) pairs_.insert(key(e.cell, lower[done]));
        }
      low = high;
    }
  }

  const Cells& c_;
  std::vector<std::size_t> position_;
  std::unordered_set<std::uint64_t> pairs_;
};

/// One of the four ways. Rows are given in the direction of work.
class Alignment {
 public:
  Alignment(const Cells& c, Rows rows, bool downwards, const Conflicts& conflicts,
            const LayoutOptions& options)
      : c_(c),
        rows_(std::move(rows)),
        neighbours_(downwards ? c.up : c.down),
        options_(options),
        root_(c.cells.size()),
        taken_(c.cells.size(), false) {
    std::iota(root_.begin(), root_.end(), 0u);
    join(conflicts);
  }

  std::vector<double> pack() const {
    const auto blocks = block_graph();
    const auto order = topological(blocks);
    std::vector<double> x(c_.cells.size(), 0);
    for (const auto b : order)
      for (const auto& [to, gap] : blocks[b]) x[to] = std::max(x[to], x[b] + gap);
    // Back: as near to the right neighbours as the gaps allow.
    for (auto b = order.rbegin(); b != order.rend(); ++b) {
      double right = std::numeric_limits<double>::infinity();
      for (const auto& [to, gap] : blocks[*b]) right = std::min(right, x[to] - gap);
      if (right < std::numeric_limits<double>::infinity()) x[*b] = std::max(x[*b], right);
    }
    std::vector<double> out(c_.cells.size());
    for (std::size_t v = 0; v < out.size(); ++v) out[v] = x[root_[v]];
    return out;
  }

 private:
  using Blocks = std::vector<std::vector<std::pair<std::uint32_t, double>>>;

  /// Neighbours from left to right; a line goes on as a line where it can.
  std::vector<std::uint32_t> candidates(std::uint32_t v, const std::vector<std::size_t>& position) const {
    std::vector<std::uint32_t> out;
    for (const auto& e : neighbours_[v]) {
      if (c_.cells[v].line && c_.cells[e.cell].line) return {e.cell};
      out.push_back(e.cell);
    }
    std::sort(out.begin(), out.end(), [&](auto a, auto b) { return position[a] < position[b]; });
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

  void join(const Conflicts& conflicts) {
    const auto position = positions(rows_, c_.cells.size());
    for (const auto& row : rows_) {
      std::size_t next = 0;  // blocks must not cross: places left of it are out of reach
      for (const auto v : row) {
        const auto ws = candidates(v, position);
        if (ws.empty()) continue;
        for (auto i = (ws.size() - 1) / 2; i <= ws.size() / 2; ++i) {
          const auto w = ws[i];
          if (taken_[w] || position[w] < next || conflicts.has(v, w)) continue;
          taken_[w] = true;
          root_[v] = root_[w];
          next = position[w] + 1;
          break;
        }
      }
    }
  }

  double gap(std::uint32_t a, std::uint32_t b) const {
    const auto& u = c_.cells[a];
    const auto& v = c_.cells[b];
    const double space = u.line && v.line   ? options_.line_gap
                         : u.line || v.line ? (options_.line_gap + options_.node_gap) / 2
                                            : options_.node_gap;
    return (u.width + v.width) / 2 + space;
  }

  Blocks block_graph() const {
    Blocks out(c_.cells.size());
    for (const auto& row : rows_)
      for (std::size_t i = 0; i + 1 < row.size(); ++i)
        out[root_[row[i]]].emplace_back(root_[row[i + 1]], gap(row[i], row[i + 1]));
    return out;
  }

  static std::vector<std::uint32_t> topological(const Blocks& blocks) {
    std::vector<std::size_t> waiting(blocks.size(), 0);
    for (const auto& edges : blocks)
      for (const auto& e : edges) ++waiting[e.first];
    std::vector<std::uint32_t> order;
    for (std::uint32_t b = 0; b < blocks.size(); ++b)
      if (waiting[b] == 0) order.push_back(b);
    for (std::size_t i = 0; i < order.size(); ++i)
      for (const auto& e : blocks[order[i]])
        if (--waiting[e.first] == 0) order.push_back(e.first);
    return order;
  }

  const Cells& c_;
  Rows rows_;
  const std::vector<std::vector<CellEdge>>& neighbours_;
  const LayoutOptions& options_;
  std::vector<std::uint32_t> root_;
  std::vector<bool> taken_;
};

std::pair<double, double> extent(const Cells& c, const std::vector<double>& x) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (std::size_t v = 0; v < x.size(); ++v) {
    low = std::min(low, x[v] - c.cells[v].width / 2);
    high = std::max(high, x[v] + c.cells[v].width / 2);
  }
  return {low, high};
}

std::vector<double> one_way(const Cells& c, const LayoutOptions& options, const Conflicts& conflicts,
                            bool downwards, bool from_left) {
  Rows rows = c.ranks;
  if (!downwards) std::reverse(rows.begin(), rows.end());
  if (!from_left)
    for (auto& row : rows) std::reverse(row.begin(), row.end());
  auto x = Alignment(c, std::move(rows), downwards, conflicts, options).pack();
  if (!from_left)
    for (auto& v : x) v = -v;
  return x;
}

}  // namespace

std::vector<double> align_cells(const Cells& c, const LayoutOptions& options) {
  if (c.cells.empty()) return {};
  const Conflicts conflicts(c);
  std::array<std::vector<double>, 4> ways;
  std::array<std::pair<double, double>, 4> extents;
  std::size_t narrowest = 0;
  for (std::size_t w = 0; w < 4; ++w) {
    ways[w] = one_way(c, options, conflicts, w < 2, w % 2 == 0);
    extents[w] = extent(c, ways[w]);
    const auto width = [&](std::size_t i) { return extents[i].second - extents[i].first; };
    if (width(w) < width(narrowest)) narrowest = w;
  }
  for (std::size_t w = 0; w < 4; ++w) {
    const double shift = w % 2 == 0 ? extents[narrowest].first - extents[w].first
                                    : extents[narrowest].second - extents[w].second;
    for (auto& x : ways[w]) x += shift;
  }
  std::vector<double> out(c.cells.size());
  for (std::size_t v = 0; v < out.size(); ++v) {
    std::array<double, 4> x{ways[0][v], ways[1][v], ways[2][v], ways[3][v]};
    std::sort(x.begin(), x.end());
    out[v] = (x[1] + x[2]) / 2;
  }
  const double low = extent(c, out).first;
  for (auto& x : out) x -= low;
  return out;
}

}  // namespace lamina
