/// Order within ranks: barycenter sweeps, then exchanges of neighbours.
#include <algorithm>
#include <numeric>

#include "draw/graph_cells.h"

namespace lamina {
namespace {

using CellRow = std::vector<std::uint32_t>;

/// Depth first from the top: what belongs together starts side by side.
void first_order(Cells& c) {
  for (auto& row : c.ranks) row.clear();
  std::vector<std::uint32_t> by_rank(c.cells.size());
  std::iota(by_rank.begin(), by_rank.end(), 0u);
  std::stable_sort(by_rank.begin(), by_rank.end(),
                   [&](auto a, auto b) { return c.cells[a].rank < c.cells[b].rank; });
  std::vector<bool> seen(c.cells.size(), false);
  for (const auto start : by_rank) {
    CellRow stack{start};
    while (!stack.empty()) {
      const auto cell = stack.back();
      stack.pop_back();
      if (seen[cell]) continue;
      seen[cell] = true;
      c.ranks[c.cells[cell].rank].push_back(cell);
      for (auto e = c.down[cell].rbegin(); e != c.down[cell].rend(); ++e) stack.push_back(e->cell);
    }
  }
}

class Orderer {
 public:
  explicit Orderer(Cells& c) : c_(c), position_(c.cells.size()) {
    for (const auto& row : c_.ranks) number(row);
  }

  void sweep(bool downwards, bool ties_reversed) {
    const auto n = c_.ranks.size();
    for (std::size_t i = 1; i < n; ++i) {
      auto& row = c_.ranks[downwards ? i : n - 1 - i];
      sort_row(row, downwards ? c_.up : c_.down, ties_reversed);
      number(row);
    }
  }

  /// Exchanges neighbours while that removes crossings; true when it did.
  bool exchange() {
    bool any = false;
    for (auto& row : c_.ranks)
      for (std::size_t i = 0; i + 1 < row.size(); ++i) {
        const auto a = row[i], b = row[i + 1];
        if (crossings(a, b) <= crossings(b, a)) continue;
        std::swap(row[i], row[i + 1]);
        std::swap(position_[a], position_[b]);
        any = true;
      }
    return any;
  }

  /// The number of lines that cross between neighbouring ranks.
  std::size_t count() const {
    std::size_t sum = 0;
    for (std::size_t r = 0; r + 1 < c_.ranks.size(); ++r) sum += between(c_.ranks[r]);
    return sum;
  }

 private:
  void number(const CellRow& row) {
    for (std::size_t i = 0; i < row.size(); ++i) position_[row[i]] = static_cast<double>(i);
  }
  /// Where a line meets a cell, in units of positions.
  double at(std::uint32_t cell, double offset) const {
    return position_[cell] + offset / (c_.cells[cell].width + 1);
  }

  /// Cells without neighbours stay where they are; the others are sorted into the remaining places.
  void sort_row(CellRow& row, const std::vector<std::vector<CellEdge>>& neighbours,
                bool ties_reversed) const {
    struct Keyed {
      double key;
      std::uint32_t cell;
    };
    std::vector<Keyed> keyed;
    for (const auto cell : row) {
      const auto& edges = neighbours[cell];
      if (edges.empty()) continue;
      double sum = 0;
      for (const auto& e : edges) sum += at(e.cell, e.there) - e.here / (c_.cells[cell].width + 1);
      keyed.push_back({sum / static_cast<double>(edges.size()), cell});
    }
    if (ties_reversed) std::reverse(keyed.begin(), keyed.end());
    std::stable_sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
    std::size_t next = 0;
    for (auto& place : row)
      if (!neighbours[place].empty()) place = keyed[next++].cell;
  }

  /// Lines of a and b that cross when a stands left of b.
  std::size_t crossings(std::uint32_t a, std::uint32_t b) const {
    std::size_t sum = 0;
    for (const auto* side : {&c_.up, &c_.down})
      for (const auto& ea : (*side)[a])
        for (const auto& eb : (*side)[b]) sum += at(ea.cell, ea.there) > at(eb.cell, eb.there);
    return sum;
  }

  /// Crossings between a rank and the next: inversions, counted by merging.
  std::size_t between(const CellRow& row) const {
    std::vector<std::pair<double, double>> lines;
    for (const auto cell : row)
      for (const auto& e : c_.down[cell]) lines.emplace_back(at(cell, e.here), at(e.cell, e.there));
    std::sort(lines.begin(), lines.end());
    std::vector<double> ends, spare(lines.size());
    for (const auto& line : lines) ends.push_back(line.second);
    return inversions(ends, spare, 0, ends.size());
  }
  static std::size_t inversions(std::vector<double>& v, std::vector<double>& spare, std::size_t from,
                                std::size_t to) {
    if (to - from < 2) return 0;
    const auto middle = from + (to - from) / 2;
    auto sum = inversions(v, spare, from, middle) + inversions(v, spare, middle, to);
    std::size_t a = from, b = middle;
    for (std::size_t i = from; i < to; ++i) {
      const bool right = a == middle || (b < to && v[b] < v[a]);
      if (right) sum += middle - a;
      spare[i] = v[right ? b++ : a++];
    }
    std::copy(spare.begin() + static_cast<std::ptrdiff_t>(from),
              spare.begin() + static_cast<std::ptrdiff_t>(to), v.begin() + static_cast<std::ptrdiff_t>(from));
    return sum;
  }

  Cells& c_;
  std::vector<double> position_;
};

}  // namespace

void order_cells(Cells& c) {
  first_order(c);
  Orderer orderer(c);
  auto best = c.ranks;
  auto fewest = orderer.count();
  constexpr int kSweeps = 24, kPatience = 6;
  for (int i = 0, since = 0; i < kSweeps && since < kPatience && fewest > 0; ++i, ++since) {
    orderer.sweep(i % 2 == 0, i % 4 >= 2);
    const auto count = orderer.count();
    if (count >= fewest) continue;
    fewest = count;
    best = c.ranks;
    since = 0;
  }
  c.ranks = std::move(best);
  Orderer last(c);
  for (int i = 0; i < 10 && last.exchange();) ++i;
}

}  // namespace lamina
