// Decision trees by the native kernel, against the reference: tests, aggregates, rows, targets, NaN.
#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

/// What a random ensemble is made of.
struct Kind {
  int trees, depth, targets, votes;  ///< votes: of a leaf; 0: 0 to 3 of them
  int tests;                         ///< only the first so many tests
  bool nan = false;
  const char* more = "";  ///< attributes
};

class Ensemble {
 public:
  Ensemble(const Kind& kind, std::uint64_t seed) : kind_(kind), state_(seed * 2654435761u + 12345) {}

  /// Nodes are numbered as they are made, parents first. Roots may be shared, and so may subtrees.
  std::string text(int rows, int features, const std::string& type) {
    std::string roots;
    for (int i = 0; i < kind_.trees; ++i) roots += fmt::format("{}{}", i ? ", " : "", node(0, features));
    std::string nodes, thresholds, starts = "0", targets, weights, base;
    for (const auto& n : nodes_) {
      nodes += (nodes.empty() ? "" : ", ") + n.first;
      thresholds += fmt::format("{}{}", thresholds.empty() ? "" : ", ", n.second);
    }
    int count = 0;
    for (const int votes : leaves_) {
      for (int v = 0; v < votes; ++v, ++count) {
        targets +=
            fmt::format("{}{}", count ? ", " : "", kind_.votes == kind_.targets ? v : next(kind_.targets));
        weights += fmt::format("{}{}", count ? ", " : "", (next(2001) - 1000) / 1000.0);
      }
      starts += fmt::format(", {}", count);
    }
    for (int k = 0; k < kind_.targets; ++k) base += fmt::format("{}{}", k ? ", " : "", k * 0.25 - 1);
    return fmt::format(
        "graph (x: {0}[{1},{2}]) -> (y) {{\n n = const i32[{3},5] {{{4}}}\n t = const {0}[{3}] {{{5}}}\n"
        " r = const i32[{6}] {{{7}}}\n l = const i32[{8}] {{{9}}}\n v = const i32[{10}] {{{11}}}\n"
        " w = const {0}[{10}] {{{12}}}\n b = const {0}[{13}] {{{14}}}\n"
        " y = TreeEnsemble(x, n, t, r, l, v, w, b) targets={13} {15}\n}}\n",
        type, rows, features, nodes_.size(), nodes, thresholds, kind_.trees, roots, leaves_.size() + 1,
        starts, count, targets, weights, kind_.targets, base, kind_.more);
  }

 private:
  int next(int below) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int>((state_ >> 33) % static_cast<std::uint64_t>(below));
  }
  int node(int depth, int features) {
    if (depth >= kind_.depth || (depth > 0 && next(6) == 0)) {
      leaves_.push_back(kind_.votes > 0 ? kind_.votes : next(4));
      return ~(static_cast<int>(leaves_.size()) - 1);
    }
    const auto at = nodes_.size();
    nodes_.emplace_back();
    const int yes = node(depth + 1, features), no = next(8) == 0 ? yes : node(depth + 1, features);
    nodes_[at] = {fmt::format("{}, {}, {}, {}, {}", next(features), next(kind_.tests), yes, no,
                              kind_.nan ? next(2) : 0),
                  next(9) * 0.25 - 1};
    return static_cast<int>(at);
  }

  Kind kind_;
  std::uint64_t state_;
  std::vector<std::pair<std::string, double>> nodes_;
  std::vector<int> leaves_;
};

/// On a grid, so that thresholds are met, with infinities and NaN.
Tensor rows_on_grid(ElementType type, int rows, int features, bool nan) {
  std::vector<double> values(static_cast<std::size_t>(rows * features));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<double>((i * 7919 + 13) % 11) * 0.25 - 1.25;
    if (i % 37 == 5) values[i] = std::numeric_limits<double>::infinity();
    if (i % 41 == 7) values[i] = -std::numeric_limits<double>::infinity();
    if (nan && i % 5 == 3) values[i] = std::numeric_limits<double>::quiet_NaN();
  }
  return from_doubles(type, {rows, features}, values);
}

void check(const Kind& kind, int rows, int features, ElementType type, std::uint64_t seed) {
  const auto text = Ensemble(kind, seed).text(rows, features, std::string(name_of(type)));
  SCOPED_TRACE(fmt::format("{} trees of depth {}, {} targets, {} rows, {}", kind.trees, kind.depth,
                           kind.targets, rows, kind.more));
  check_kernels(text, seed);
  const auto graph = parse(text);
  const auto x = rows_on_grid(type, rows, features, kind.nan);
  const auto got = run_graph(graph, {x}).outputs[0], wanted = interpret(graph, {x})[0];
  const auto a = to_doubles(got), b = to_doubles(wanted);
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_TRUE(a[i] == b[i] || std::abs(a[i] - b[i]) < 1e-5) << i << ": " << a[i] << ", wanted " << b[i];
}

TEST(Trees, grid) {
  const Kind kinds[] = {
      {1, 3, 1, 1, 1},
      {9, 5, 1, 1, 1},
      {20, 6, 1, 1, 2, true},
      {20, 6, 1, 1, 4, true, "aggregate=average"},
      {7, 5, 1, 1, 6, true},
      {8, 4, 3, 3, 1, true},
      {30, 4, 4, 1, 6, true, "aggregate=average"},
      {5, 4, 3, 0, 6, true, "unvoted=-7"},
      {5, 4, 3, 0, 2, true, "aggregate=min"},
      {12, 4, 2, 0, 6, true, "aggregate=max unvoted=3"},
      {3, 0, 2, 2, 1},
  };
  std::uint64_t seed = 0;
  for (const auto& kind : kinds)
    for (const int rows : {1, 3, 8, 17, 300}) {
      ++seed;
      check(kind, rows, 4, seed % 3 == 0 ? ElementType::f64 : ElementType::f32, seed);
    }
}

/// Targets are so many that a block has a single row.
TEST(Trees, many_targets) { check({6, 3, 9000, 2, 2}, 5, 3, ElementType::f32, 1); }

TEST(Trees, numbers_that_are_out_of_range) {
  const auto with = [](const char* nodes, const char* roots, const char* leaves, const char* targets) {
    const auto graph = parse(fmt::format(
        "graph (x: f32[2,2]) -> (y) {{\n n = const i32[2,5] {{{}}}\n t = const f32[2] {{0, 0}}\n r = const "
        "i32[1] "
        "{{{}}}\n l = const i32[3] {{{}}}\n v = const i32[2] {{{}}}\n w = const f32[2] {{1, 2}}\n y = "
        "TreeEnsemble(x, n, t, r, l, v, w) targets=2\n}}\n",
        nodes, roots, leaves, targets));
    const Tensor x(ElementType::f32, {2, 2});
    std::string said;
    try {
      run_graph(graph, {x});
    } catch (const Error& e) {
      said = e.what();
    }
    if (said.empty()) {
      interpret(graph, {x});
    } else {
      EXPECT_THROW(interpret(graph, {x}), Error);
    }
    return said;
  };
  const auto expect_says = [](const std::string& text, std::string_view wanted) {
    EXPECT_NE(text.find(wanted), std::string::npos) << text << "\nwanted: " << wanted;
  };
  const char* good = "0, 0, 1, -1, 0, 1, 0, -1, -2, 0";
  EXPECT_EQ(with(good, "0", "0, 1, 2", "0, 1"), "");
  expect_says(with("0, 0, 0, -1, 0, 1, 0, -1, -2, 0", "0", "0, 1, 2", "0, 1"),
              "a node's child is node 0, wanted 1..1");
  expect_says(with("0, 0, 1, -1, 0, 1, 0, -1, -3, 0", "0", "0, 1, 2", "0, 1"), "leaf 2, wanted 0..1");
  expect_says(with("9, 0, 1, -1, 0, 1, 0, -1, -2, 0", "0", "0, 1, 2", "0, 1"),
              "x has 2 features, the trees ask for 10");
  expect_says(with("0, 6, 1, -1, 0, 1, 0, -1, -2, 0", "0", "0, 1, 2", "0, 1"), "has the test 6");
  expect_says(with(good, "2", "0, 1, 2", "0, 1"), "a root is node 2");
  expect_says(with(good, "0", "0, 2, 1", "0, 1"), "leaf 1 has the votes 2 to 1");
  expect_says(with(good, "0", "0, 1, 9", "0, 1"), "there are 2");
  expect_says(with(good, "0", "0, 1, 2", "0, 2"), "a vote is for target 2, wanted 0..1");
}

}  // namespace
}  // namespace lamina::testing
