#include "draw/graph_layout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

namespace lamina::graph_layout_test {
namespace {

struct Drawing {
  std::vector<LayoutNode> nodes;
  std::vector<LayoutEdge> edges;
  GraphLayout layout() const { return lay_out(nodes, edges); }
};

/// A chain of blocks like a network's, with branches and long skips.
Drawing random_network(unsigned seed, std::size_t count) {
  std::mt19937 random(seed);
  Drawing d;
  for (std::size_t n = 0; n < count; ++n) {
    d.nodes.push_back(
        {20.0 + static_cast<double>(random() % 200), 10.0 + static_cast<double>(random() % 80)});
    if (n == 0) continue;
    d.edges.push_back({n - 1 - random() % std::min<std::size_t>(n, 3), n});
    if (random() % 3 == 0) d.edges.push_back({random() % n, n, random() % 2, 0, 0});
  }
  return d;
}

void expect_readable(const Drawing& d, const GraphLayout& l) {
  ASSERT_EQ(l.nodes.size(), d.nodes.size());
  ASSERT_EQ(l.edges.size(), d.edges.size());
  for (std::size_t a = 0; a < d.nodes.size(); ++a) {
    EXPECT_GE(l.nodes[a].x, -1e-6);
    EXPECT_LE(l.nodes[a].x + d.nodes[a].width, l.width + 1e-6);
    EXPECT_LE(l.nodes[a].y + d.nodes[a].height, l.height + 1e-6);
    for (std::size_t b = 0; b < a; ++b) {
      const bool beside = l.nodes[a].x + d.nodes[a].width <= l.nodes[b].x + 1e-6 ||
                          l.nodes[b].x + d.nodes[b].width <= l.nodes[a].x + 1e-6;
      const bool above = l.nodes[a].y + d.nodes[a].height <= l.nodes[b].y + 1e-6 ||
                         l.nodes[b].y + d.nodes[b].height <= l.nodes[a].y + 1e-6;
      EXPECT_TRUE(beside || above) << "boxes " << b << " and " << a << " overlap";
    }
  }
  for (std::size_t e = 0; e < d.edges.size(); ++e) {
    const auto& edge = d.edges[e];
    EXPECT_LT(l.ranks[edge.from], l.ranks[edge.to]);
    const auto& path = l.edges[e];
    ASSERT_EQ(path.size(), 2 * (1 + l.ranks[edge.to] - l.ranks[edge.from]));
    EXPECT_NEAR(path.front().y, l.nodes[edge.from].y + d.nodes[edge.from].height, 1e-6);
    EXPECT_NEAR(path.back().y, l.nodes[edge.to].y, 1e-6);
    for (std::size_t i = 0; i + 1 < path.size(); ++i) EXPECT_LE(path[i].y, path[i + 1].y + 1e-6);
    // Where it passes a rank, no box is in the way.
    for (std::size_t i = 2; i + 2 < path.size(); i += 2)
      for (std::size_t n = 0; n < d.nodes.size(); ++n)
        if (l.ranks[n] == l.ranks[edge.from] + i / 2) {
          EXPECT_FALSE(path[i].x > l.nodes[n].x && path[i].x < l.nodes[n].x + d.nodes[n].width);
        }
  }
}

TEST(GraphLayout, Nothing) {
  const auto l = lay_out({}, {});
  EXPECT_TRUE(l.nodes.empty());
  EXPECT_EQ(l.height, 0);
}

TEST(GraphLayout, ChainIsStraight) {
  Drawing d;
  for (int i = 0; i < 20; ++i) d.nodes.push_back({20.0 + 7 * (i % 5), 30});
  for (std::size_t i = 0; i + 1 < 20; ++i) d.edges.push_back({i, i + 1});
  const auto l = d.layout();
  expect_readable(d, l);
  for (const auto& path : l.edges)
    for (const auto& p : path) EXPECT_NEAR(p.x, path[0].x, 1e-6);
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(l.ranks[i], i);
}

TEST(GraphLayout, LongestPathGivesTheRanks) {
  // 0 -> 1 -> 2 -> 4, 0 -> 3 -> 4, and 5 -> 4: an input that only the last one reads goes down to it.
  const std::vector<LayoutEdge> edges{{0, 1}, {1, 2}, {2, 4}, {0, 3}, {3, 4}, {5, 4}};
  const auto ranks = longest_path_ranks(6, edges);
  EXPECT_EQ(ranks[0], 0u);
  EXPECT_EQ(ranks[4], 3u);
  EXPECT_EQ(ranks[5], 2u);
}

TEST(GraphLayout, SkipsPassBesideBoxes) {
  Drawing d;
  d.nodes.assign(6, {80, 40});
  for (std::size_t i = 0; i < 5; ++i) d.edges.push_back({i, i + 1});
  d.edges.push_back({0, 5});
  d.edges.push_back({0, 3});
  const auto l = d.layout();
  expect_readable(d, l);
  // The two skips leave one port: they share their way.
  EXPECT_EQ(l.edges[5][2], l.edges[6][2]);
}

TEST(GraphLayout, PortsKeepTheirOffsets) {
  Drawing d;
  d.nodes.assign(3, {80, 40});
  d.edges = {{0, 1, 0, -20, 0}, {0, 2, 1, 20, 5}};
  const auto l = d.layout();
  EXPECT_NEAR(l.edges[0].front().x, l.nodes[0].x + 20, 1e-6);
  EXPECT_NEAR(l.edges[1].front().x, l.nodes[0].x + 60, 1e-6);
  EXPECT_NEAR(l.edges[1].back().x, l.nodes[2].x + 45, 1e-6);
  EXPECT_LT(l.nodes[1].x, l.nodes[2].x);  // no crossing
}

TEST(GraphLayout, CyclesAndLoopsDoNotHurt) {
  Drawing d;
  d.nodes.assign(4, {50, 20});
  d.edges = {{0, 1}, {1, 2}, {2, 0}, {3, 3}, {2, 3}};
  const auto l = d.layout();
  ASSERT_EQ(l.edges.size(), 5u);
  EXPECT_TRUE(l.edges[3].empty());
  EXPECT_GT(l.edges[2].front().y, l.edges[2].back().y);  // runs upwards
}

TEST(GraphLayout, RandomNetworksAreReadableAndAlwaysTheSame) {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    const auto d = random_network(seed, 5 + seed * 4);
    const auto l = d.layout();
    expect_readable(d, l);
    const auto again = d.layout();
    EXPECT_EQ(l.nodes, again.nodes);
    EXPECT_EQ(l.edges, again.edges);
  }
}

void expect_no_overlaps(const Drawing& d, const GraphLayout& l) {
  for (std::size_t a = 0; a < d.nodes.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) {
      const auto &p = l.nodes[a], &q = l.nodes[b];
      EXPECT_FALSE(p.x < q.x + d.nodes[b].width - 1e-6 && q.x < p.x + d.nodes[a].width - 1e-6 &&
                   p.y < q.y + d.nodes[b].height - 1e-6 && q.y < p.y + d.nodes[a].height - 1e-6)
          << "boxes " << b << " and " << a << " overlap";
    }
}

TEST(GraphColumns, ALongChainFillsAPage) {
  Drawing d;
  d.nodes.assign(90, {100, 40});
  for (std::size_t i = 0; i + 1 < 90; ++i) d.edges.push_back({i, i + 1});
  for (std::size_t i = 0; i + 2 < 90; i += 2) d.edges.push_back({i, i + 2});
  const auto l = lay_out_in_columns(d.nodes, d.edges, 0, 1.4);
  expect_no_overlaps(d, l);
  EXPECT_GT(l.width, 0.7 * l.height);
  EXPECT_LT(l.width, 2.8 * l.height);
  for (std::size_t e = 0; e < d.edges.size(); ++e) {
    const auto& path = l.edges[e];
    EXPECT_NEAR(path.front().y, l.nodes[d.edges[e].from].y + 40, 1e-6);
    EXPECT_NEAR(path.back().y, l.nodes[d.edges[e].to].y, 1e-6);
    for (const auto& p : path) {
      EXPECT_GE(p.y, -1e-6);
      EXPECT_LE(p.y, l.height + 1e-6);
    }
  }
}

TEST(GraphColumns, AreAsManyAsAskedFor) {
  Drawing d;
  d.nodes.assign(12, {100, 40});
  for (std::size_t i = 0; i + 1 < 12; ++i) d.edges.push_back({i, i + 1});
  for (std::size_t columns = 1; columns <= 4; ++columns) {
    const auto l = lay_out_in_columns(d.nodes, d.edges, columns, 1.4);
    std::set<double> lefts;
    for (const auto& p : l.nodes) lefts.insert(p.x);
    EXPECT_EQ(lefts.size(), columns);
  }
  // Small enough for one column when nobody asks.
  EXPECT_EQ(lay_out_in_columns(d.nodes, d.edges, 0, 1.4).nodes[11].x, 0);
}

TEST(GraphColumns, RandomNetworksKeepTheirLines) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    const auto d = random_network(seed, 60);
    const auto l = lay_out_in_columns(d.nodes, d.edges, 3, 1.4);
    expect_no_overlaps(d, l);
    for (std::size_t e = 0; e < d.edges.size(); ++e) {
      const auto &from = d.edges[e].from, &to = d.edges[e].to;
      EXPECT_NEAR(l.edges[e].front().x, l.nodes[from].x + d.nodes[from].width / 2, 1e-6);
      EXPECT_NEAR(l.edges[e].back().x, l.nodes[to].x + d.nodes[to].width / 2, 1e-6);
    }
  }
}

TEST(GraphColumns, LongLinesPassAboveColumnsThatDoNotReadThem) {
  Drawing d;
  d.nodes.assign(60, {100, 40});
  for (std::size_t i = 0; i + 1 < 60; ++i) d.edges.push_back({i, i + 1});
  d.edges.push_back({0, 59});
  const auto l = lay_out_in_columns(d.nodes, d.edges, 6, 1.4);
  double vertical = 0;
  const auto& path = l.edges.back();
  for (std::size_t i = 0; i + 1 < path.size(); ++i) vertical += std::fabs(path[i + 1].y - path[i].y);
  EXPECT_LT(vertical, 3.2 * l.height);  // down the first column, up beside it, down the last
  // Above the columns between, where no box is.
  for (const auto& p : path)
    if (p.x > l.nodes[15].x && p.x < l.nodes[45].x) {
      EXPECT_LT(p.y, l.nodes[15].y);
    }
}

TEST(GraphLayout, AThousandNodes) {
  const auto d = random_network(7, 1000);
  const auto l = d.layout();
  EXPECT_EQ(l.nodes.size(), 1000u);
  EXPECT_GT(l.width, 0);
}

}  // namespace
}  // namespace lamina::graph_layout_test
