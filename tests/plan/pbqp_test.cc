#include "plan/pbqp.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/random.h"

namespace lamina {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Problem {
  std::vector<Pbqp::Costs> variables;
  struct Edge {
    std::size_t a, b;
    Pbqp::Costs costs;
  };
  std::vector<Edge> edges;

  double cost(const std::vector<std::size_t>& chosen) const {
    double sum = 0;
    for (std::size_t v = 0; v < variables.size(); ++v) sum += variables[v][chosen[v]];
    for (const auto& e : edges) sum += e.costs[chosen[e.a] * variables[e.b].size() + chosen[e.b]];
    return sum;
  }
  double least() const {
    std::vector<std::size_t> chosen(variables.size(), 0);
    double best = kInfinity;
    for (bool more = true; more;) {
      best = std::min(best, cost(chosen));
      more = false;
      for (std::size_t v = 0; v < variables.size() && !more; ++v)
        if (++chosen[v] < variables[v].size())
          more = true;
        else
          chosen[v] = 0;
    }
    return best;
  }
  std::pair<double, std::size_t> solved() const {
    Pbqp p;
    for (const auto& v : variables) p.add(v);
    for (const auto& e : edges) p.connect(e.a, e.b, e.costs);
    const auto chosen = p.solve();
    return {cost(chosen), p.guesses()};
  }
};

Pbqp::Costs random_costs(SplitMix& random, std::size_t count, bool forbid) {
  Pbqp::Costs costs;
  for (std::size_t i = 0; i < count; ++i)
    costs.push_back(forbid && random.below(4) == 0 ? kInfinity : static_cast<double>(random.below(100)));
  return costs;
}

/// A tree, plus `more` further edges.
Problem random_problem(SplitMix& random, std::size_t count, std::size_t more, bool forbid) {
  Problem p;
  for (std::size_t v = 0; v < count; ++v)
    p.variables.push_back(random_costs(random, 1 + random.below(3), false));
  const auto edge = [&](std::size_t a, std::size_t b) {
    p.edges.push_back({a, b, random_costs(random, p.variables[a].size() * p.variables[b].size(), forbid)});
  };
  for (std::size_t v = 1; v < count; ++v) edge(random.below(v), v);
  for (std::size_t i = 0; i < more; ++i) {
    const auto a = random.below(count), b = random.below(count);
    if (a != b) edge(a, b);
  }
  return p;
}

TEST(Pbqp, is_exact_on_trees) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SplitMix random(seed);
    const auto p = random_problem(random, 2 + random.below(8), 0, true);
    const auto [cost, guesses] = p.solved();
    EXPECT_EQ(guesses, 0u) << "seed " << seed;
    EXPECT_EQ(cost, p.least()) << "seed " << seed;
  }
}

TEST(Pbqp, is_exact_unless_it_says_that_it_guessed_and_good_then) {
  double found = 0, best = 0;
  std::size_t exact = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SplitMix random(seed);
    const auto p = random_problem(random, 3 + random.below(7), random.below(8), false);
    const auto [cost, guesses] = p.solved();
    const auto least = p.least();
    if (guesses == 0) {
      ++exact;
      EXPECT_EQ(cost, least) << "seed " << seed;
    }
    found += cost, best += least;
  }
  EXPECT_GT(exact, 100u);
  EXPECT_LT(found, 1.05 * best);
}

TEST(Pbqp, takes_repeated_edges_and_lone_variables) {
  Pbqp p;
  const auto a = p.add({5, 1, 3}), b = p.add({0, 10}), c = p.add({2, 1});
  p.connect(a, b, {0, 0, 0, 0, kInfinity, 0});
  p.connect(b, a, {0, 9, 0, 0, 0, 0});
  EXPECT_EQ(p.solve(), (std::vector<std::size_t>{0, 0, 1}));
  EXPECT_EQ(p.alternatives(c), 2u);
}

}  // namespace
}  // namespace lamina
