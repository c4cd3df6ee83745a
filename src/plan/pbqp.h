#pragma once
/// Choosing one alternative per variable so that the sum of costs is least: a partitioned Boolean quadratic
/// problem (Scholz and Eckstein, "Register allocation for irregular architectures", 2002).
#include <cstddef>
#include <cstdint>
#include <queue>
#include <vector>

namespace lamina {

/// Variables have a cost per alternative; edges a cost per pair of alternatives. Infinite costs forbid.
/// Exact where eliminating variables of one or two neighbours empties the graph (chains, trees,
/// series-parallel graphs), good on the rest.
class Pbqp {
 public:
  using Costs = std::vector<double>;

  std::size_t add(Costs costs);
  /// costs[i * alternatives(b) + j]: of alternative i of `a` with j of `b`. Adds up over repeated edges.
  void connect(std::size_t a, std::size_t b, const Costs& costs);
  std::size_t alternatives(std::size_t variable) const { return costs_[variable].size(); }

  /// The chosen alternative of each variable; consumes the problem.
  std::vector<std::size_t> solve();
  /// Variables that had to be decided by a guess in solve(); 0: the answer is the least possible.
  std::size_t guesses() const { return guesses_; }

 private:
  struct Edge {
    std::size_t a, b;
    Costs costs;
  };
  struct Eliminated {
    std::size_t variable;
    std::vector<std::size_t> edges;  // as they were
    Costs costs;
  };

  std::size_t other(const Edge& e, std::size_t v) const { return e.a == v ? e.b : e.a; }
  double cost(const Edge& e, std::size_t v, std::size_t mine, std::size_t theirs) const {
    return e.a == v ? e.costs[mine * costs_[e.b].size() + theirs]
                    : e.costs[theirs * costs_[e.b].size() + mine];
  }
  void detach(std::size_t edge);
  void eliminate_one(std::size_t v);
  void eliminate_two(std::size_t v);
  void guess(std::size_t v);
  void eliminated(std::size_t v);
  std::size_t next();

  std::vector<Costs> costs_;
  std::vector<Edge> edges_;
  std::vector<std::vector<std::size_t>> edges_of_;  // alive ones
  std::vector<bool> done_;
  std::vector<std::vector<std::size_t>> ready_;  // variables that once had 0, 1, 2 edges
  struct Degree {
    std::size_t edges, variable;
    bool operator<(const Degree& o) const {
      return edges != o.edges ? edges < o.edges : variable > o.variable;
    }
  };
  std::priority_queue<Degree> degrees_;  // edges that variables once had
  std::vector<Eliminated> order_;
  std::size_t guesses_ = 0;
};

}  // namespace lamina
