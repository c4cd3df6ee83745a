#include "plan/pbqp.h"

#include <algorithm>
#include <limits>

#include "base/cancellation.h"

namespace lamina {
namespace {
constexpr double kInfinity = std::numeric_limits<double>::infinity();
}

std::size_t Pbqp::add(Costs costs) {
  costs_.push_back(std::move(costs));
  edges_of_.emplace_back();
  return costs_.size() - 1;
}

void Pbqp::connect(std::size_t a, std::size_t b, const Costs& costs) {
  const auto fewer = edges_of_[a].size() < edges_of_[b].size() ? a : b;
  for (const auto e : edges_of_[fewer]) {
    auto& edge = edges_[e];
    if (other(edge, fewer) != (fewer == a ? b : a)) continue;
    const auto rows = costs_[a].size(), columns = costs_[b].size();
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j)
        edge.costs[edge.a == a ? i * columns + j : j * rows + i] += costs[i * columns + j];
    return;
  }
  edges_.push_back({a, b, costs});
  edges_of_[a].push_back(edges_.size() - 1);
  edges_of_[b].push_back(edges_.size() - 1);
}

void Pbqp::detach(std::size_t edge) {
  const auto& e = edges_[edge];
  for (const auto v : {e.a, e.b}) {
    auto& list = edges_of_[v];
    list.erase(std::find(list.rbegin(), list.rend(), edge).base() - 1);  // the last ones go first
    if (!done_[v] && list.size() <= 2) ready_[list.size()].push_back(v);
  }
}

void Pbqp::eliminated(std::size_t v) {
  done_[v] = true;
  order_.push_back({v, edges_of_[v], costs_[v]});
  const auto edges = edges_of_[v];
  for (const auto e : edges) detach(e);
}

/// The neighbour learns the least that each of its alternatives costs here.
void Pbqp::eliminate_one(std::size_t v) {
  const Edge& e = edges_[edges_of_[v][0]];
  const auto n = other(e, v);
  for (std::size_t j = 0; j < costs_[n].size(); ++j) {
    double least = kInfinity;
    for (std::size_t i = 0; i < costs_[v].size(); ++i)
      least = std::min(least, costs_[v][i] + cost(e, v, i, j));
    costs_[n][j] += least;
  }
  eliminated(v);
}

/// Eliminates a variable with two neighbours: its best costs, for each pair of their alternatives, become an
/// edge between them.
void Pbqp::eliminate_two(std::size_t v) {
  const Edge e = edges_[edges_of_[v][0]], f = edges_[edges_of_[v][1]];
  const auto n = other(e, v), m = other(f, v);
  Costs between(costs_[n].size() * costs_[m].size(), kInfinity);
  for (std::size_t j = 0; j < costs_[n].size(); ++j)
    for (std::size_t k = 0; k < costs_[m].size(); ++k)
      for (std::size_t i = 0; i < costs_[v].size(); ++i) {
        auto& least = between[j * costs_[m].size() + k];
        least = std::min(least, costs_[v][i] + cost(e, v, i, j) + cost(f, v, i, k));
      }
  eliminated(v);
  connect(n, m, between);
}

/// Fixes the alternative that is best if each neighbour answers by itself.
void Pbqp::guess(std::size_t v) {
  ++guesses_;
  std::size_t best = 0;
  double least = kInfinity;
  for (std::size_t i = 0; i < costs_[v].size(); ++i) {
    double sum = costs_[v][i];
    for (const auto id : edges_of_[v]) {
      const Edge& e = edges_[id];
      const auto n = other(e, v);
      double answer = kInfinity;
      for (std::size_t j = 0; j < costs_[n].size(); ++j)
        answer = std::min(answer, costs_[n][j] + cost(e, v, i, j));
      sum += answer;
    }
    if (sum < least) least = sum, best = i;
  }
  for (std::size_t i = 0; i < costs_[v].size(); ++i)
    if (i != best) costs_[v][i] = kInfinity;
  for (const auto id : edges_of_[v]) {
    const Edge& e = edges_[id];
    const auto n = other(e, v);
    for (std::size_t j = 0; j < costs_[n].size(); ++j) costs_[n][j] += cost(e, v, best, j);
  }
  eliminated(v);
}

/// A variable with the fewest edges, as far as that matters; `costs_.size()` when none is left.
std::size_t Pbqp::next() {
  for (std::size_t degree = 0; degree <= 2; ++degree)
    while (!ready_[degree].empty()) {
      const auto v = ready_[degree].back();
      ready_[degree].pop_back();
      if (!done_[v] && edges_of_[v].size() == degree) return v;
    }
  if (order_.size() == costs_.size()) return costs_.size();
  if (degrees_.empty())
    for (std::size_t v = 0; v < costs_.size(); ++v) degrees_.push({edges_of_[v].size(), v});
  while (true) {  // edges become fewer only
    const auto most = degrees_.top();
    degrees_.pop();
    if (done_[most.variable]) continue;
    if (edges_of_[most.variable].size() == most.edges) return most.variable;
    degrees_.push({edges_of_[most.variable].size(), most.variable});
  }
}

std::vector<std::size_t> Pbqp::solve() {
  done_.assign(costs_.size(), false);
  ready_.assign(3, {});
  for (std::size_t v = 0; v < costs_.size(); ++v)
    if (edges_of_[v].size() <= 2) ready_[edges_of_[v].size()].push_back(v);
  for (auto v = next(); v < costs_.size(); v = next()) {
    quick_stop_point();
    switch (edges_of_[v].size()) {
      case 0:
        eliminated(v);
        break;
      case 1:
        eliminate_one(v);
        break;
      case 2:
        eliminate_two(v);
        break;
      default:
        guess(v);
    }
  }
  std::vector<std::size_t> chosen(costs_.size(), 0);
  for (auto it = order_.rbegin(); it != order_.rend(); ++it) {
    double least = kInfinity;
    for (std::size_t i = 0; i < it->costs.size(); ++i) {
      double sum = it->costs[i];
      for (const auto id : it->edges) {
        const Edge& e = edges_[id];
        sum += cost(e, it->variable, i, chosen[other(e, it->variable)]);
      }
      if (sum < least) least = sum, chosen[it->variable] = i;
    }
  }
  return chosen;
}

}  // namespace lamina
