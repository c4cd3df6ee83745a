#include "draw/graph_layout.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "draw/graph_cells.h"

namespace lamina {
namespace {

/// An edge as it is laid out: downwards. `turned`: against its direction.
struct Down {
  std::size_t from, to;
  bool turned;
};

/// Nodes in an order in which few edges run backwards: none when there is no cycle.
std::vector<std::size_t> places_in_order(std::size_t nodes, const std::vector<LayoutEdge>& edges) {
  std::vector<std::size_t> waiting(nodes, 0), order;
  std::vector<std::vector<std::size_t>> out(nodes);
  for (const auto& e : edges)
    if (e.from != e.to) {
      ++waiting[e.to];
      out[e.from].push_back(e.to);
    }
  std::vector<bool> done(nodes, false);
  const auto put = [&](std::size_t n) {
    done[n] = true;
    order.push_back(n);
  };
  for (std::size_t n = 0; n < nodes; ++n)
    if (waiting[n] == 0) put(n);
  std::size_t first = 0;
  for (std::size_t i = 0; order.size() < nodes || i < order.size(); ++i) {
    if (i == order.size()) {  // only cycles are left: the first node breaks one
      while (done[first]) ++first;
      put(first);
    }
    for (const auto to : out[order[i]])
      if (--waiting[to] == 0 && !done[to]) put(to);
  }
  std::vector<std::size_t> place(nodes);
  for (std::size_t i = 0; i < nodes; ++i) place[order[i]] = i;
  return place;
}

std::vector<Down> downwards(std::size_t nodes, const std::vector<LayoutEdge>& edges) {
  const auto place = places_in_order(nodes, edges);
  std::vector<Down> out;
  for (const auto& e : edges) {
    const bool turned = place[e.from] > place[e.to];
    out.push_back({turned ? e.to : e.from, turned ? e.from : e.to, turned});
  }
  return out;
}

std::vector<std::size_t> ranks_of(std::size_t nodes, const std::vector<LayoutEdge>& edges) {
  const auto downs = downwards(nodes, edges);
  std::vector<std::vector<std::size_t>> out(nodes), in(nodes);
  std::vector<std::size_t> waiting(nodes, 0), order, rank(nodes, 0);
  for (const auto& d : downs)
    if (d.from != d.to) {
      out[d.from].push_back(d.to);
      in[d.to].push_back(d.from);
      ++waiting[d.to];
    }
  for (std::size_t n = 0; n < nodes; ++n)
    if (waiting[n] == 0) order.push_back(n);
  for (std::size_t i = 0; i < order.size(); ++i)
    for (const auto to : out[order[i]]) {
      rank[to] = std::max(rank[to], rank[order[i]] + 1);
      if (--waiting[to] == 0) order.push_back(to);
    }
  // What feeds more than it reads (inputs first of all) goes down to its reader.
  for (auto n = order.rbegin(); n != order.rend(); ++n) {
    if (out[*n].size() <= in[*n].size()) continue;
    std::size_t lowest = SIZE_MAX;
    for (const auto to : out[*n]) lowest = std::min(lowest, rank[to] - 1);
    rank[*n] = lowest;
  }
  const auto top = nodes ? *std::min_element(rank.begin(), rank.end()) : 0;
  for (auto& r : rank) r -= top;
  return rank;
}

class Builder {
 public:
  Builder(const std::vector<LayoutNode>& nodes, const std::vector<LayoutEdge>& edges,
          const LayoutOptions& options)
      : nodes_(nodes), edges_(edges), options_(options), downs_(downwards(nodes.size(), edges)) {}

  GraphLayout build() {
    layout_.ranks = options_.ranks.empty() ? ranks_of(nodes_.size(), edges_) : options_.ranks;
    make_cells();
    order_cells(cells_);
    x_ = align_cells(cells_, options_);
    place_ranks();
    place_nodes();
    for (std::size_t e = 0; e < edges_.size(); ++e) layout_.edges.push_back(path(e));
    return std::move(layout_);
  }

 private:
  std::uint32_t add_cell(std::size_t rank, double width, bool line) {
    cells_.cells.push_back({rank, width, line});
    cells_.up.emplace_back();
    cells_.down.emplace_back();
    if (cells_.ranks.size() <= rank) cells_.ranks.resize(rank + 1);
    cells_.ranks[rank].push_back(static_cast<std::uint32_t>(cells_.cells.size() - 1));
    return cells_.ranks[rank].back();
  }
  void connect(std::uint32_t upper, std::uint32_t lower, double leaves, double enters) {
    cells_.down[upper].push_back({lower, leaves, enters});
    cells_.up[lower].push_back({upper, enters, leaves});
  }

  /// Boxes are the first cells. A port's line passes each rank once, whoever reads it there.
  void make_cells() {
    for (std::size_t n = 0; n < nodes_.size(); ++n) add_cell(layout_.ranks[n], nodes_[n].width, false);
    for (std::size_t e = 0; e < edges_.size(); ++e) {
      const auto& d = downs_[e];
      const auto& edge = edges_[e];
      auto& chain = chains_[{d.from, d.turned, d.turned ? edge.to : edge.port}];
      chain_of_.push_back(&chain);
      if (d.from == d.to) continue;
      const double leaves = d.turned ? edge.to_offset : edge.from_offset;
      auto upper = static_cast<std::uint32_t>(d.from);
      for (std::size_t r = layout_.ranks[d.from] + 1; r < layout_.ranks[d.to]; ++r) {
        const auto i = r - layout_.ranks[d.from] - 1;
        if (i == chain.size()) {
          chain.push_back(add_cell(r, 0, true));
          connect(upper, chain.back(), i == 0 ? leaves : 0, 0);
        }
        upper = chain[i];
      }
      connect(upper, static_cast<std::uint32_t>(d.to), upper == d.from ? leaves : 0,
              d.turned ? edge.from_offset : edge.to_offset);
    }
  }

  /// y of the ranks: as high as their highest box, further apart where lines go far to the side.
  void place_ranks() {
    const auto n = cells_.ranks.size();
    top_.assign(n, 0);
    bottom_.assign(n, 0);
    double y = 0;
    for (std::size_t r = 0; r < n; ++r) {
      double height = 0, far = 0;
      for (const auto c : cells_.ranks[r]) {
        if (c < nodes_.size()) height = std::max(height, nodes_[c].height);
        for (const auto& e : cells_.down[c])
          far = std::max(far, std::abs(x_[c] + e.here - x_[e.cell] - e.there));
      }
      top_[r] = y;
      bottom_[r] = y + height;
      y = bottom_[r] + options_.rank_gap + std::min(0.06 * far, 2 * options_.rank_gap);
    }
    layout_.height = n ? bottom_.back() : 0;
  }

  void place_nodes() {
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      const auto r = layout_.ranks[n];
      layout_.nodes.push_back({x_[n] - nodes_[n].width / 2, (top_[r] + bottom_[r] - nodes_[n].height) / 2});
    }
    for (std::size_t c = 0; c < x_.size(); ++c)
      layout_.width = std::max(layout_.width, x_[c] + cells_.cells[c].width / 2);
  }

  std::vector<Point> path(std::size_t e) const {
    const auto& d = downs_[e];
    if (d.from == d.to) return {};
    const auto& edge = edges_[e];
    const auto first = layout_.ranks[d.from], last = layout_.ranks[d.to];
    const double leaves = x_[d.from] + (d.turned ? edge.to_offset : edge.from_offset);
    const double enters = x_[d.to] + (d.turned ? edge.from_offset : edge.to_offset);
    std::vector<Point> out{{leaves, layout_.nodes[d.from].y + nodes_[d.from].height},
                           {leaves, bottom_[first]}};
    for (auto r = first + 1; r < last; ++r) {
      const double x = x_[(*chain_of_[e])[r - first - 1]];
      out.push_back({x, top_[r]});
      out.push_back({x, bottom_[r]});
    }
    out.push_back({enters, top_[last]});
    out.push_back({enters, layout_.nodes[d.to].y});
    if (d.turned) std::reverse(out.begin(), out.end());
    return out;
  }

  const std::vector<LayoutNode>& nodes_;
  const std::vector<LayoutEdge>& edges_;
  const LayoutOptions& options_;
  std::vector<Down> downs_;
  GraphLayout layout_;
  Cells cells_;
  using Chain = std::vector<std::uint32_t>;
  std::map<std::tuple<std::size_t, bool, std::size_t>, Chain> chains_;
  std::vector<const Chain*> chain_of_;
  std::vector<double> x_, top_, bottom_;
};

}  // namespace

std::vector<std::size_t> longest_path_ranks(std::size_t nodes, const std::vector<LayoutEdge>& edges) {
  return ranks_of(nodes, edges);
}

GraphLayout lay_out(const std::vector<LayoutNode>& nodes, const std::vector<LayoutEdge>& edges,
                    const LayoutOptions& options) {
  return Builder(nodes, edges, options).build();
}

}  // namespace lamina
