#pragma once
/// The property: what is rewritten, planned and run on kernels gives what the interpreter gives for the graph
/// as it was.
#include <string>
#include <vector>

#include "graph/graph.h"
#include "tests/property/stability.h"

namespace lamina::testing {

/// How a graph is run.
struct Setting {
  std::string rules =
      "all";  ///< "all", "none", "only NAME", "without NAME", "first N" (the first N rewrites)
  int threads = 1;
  bool unknown_sizes = false;  ///< some sizes of the inputs are names when the graph is compiled
  bool ahead = false;          ///< planned before the first run, weights forgotten once they are packed
  bool any_kernels = false;    ///< not the fastest ones
};
std::string to_string(const Setting& setting);

/// A graph with inputs and what the interpreter says about them.
class Example {
 public:
  struct Run {
    std::vector<Tensor> inputs, wanted;
  };
  Example(Graph graph, std::uint64_t seed);

  const Graph& graph() const { return graph_; }
  std::uint64_t seed() const { return seed_; }
  /// Why no inputs were found on which correct implementations must agree; empty when there are.
  const std::string& unstable() const { return unstable_; }
  const std::vector<Run>& runs() const { return runs_; }
  /// The graph with names for some sizes of its inputs, and runs on two sizes if the graph allows it. Without
  /// names when inference needs all sizes.
  const Example& with_unknown_sizes() const;

 private:
  void find_runs(const std::vector<std::vector<Dims>>& dims);
  Graph graph_;
  std::uint64_t seed_;
  std::string unstable_;
  std::vector<Run> runs_;
  mutable std::shared_ptr<const Example> unknown_;
  Example() = default;
};

/// Whether any rule of the setting fires on the example's graph.
bool rewrites(const Example& example, const Setting& setting);
/// What is wrong when the example is run so; empty when nothing is. Errors that are thrown count.
std::string problem(const Example& example, const Setting& setting);

/// The settings that a seed tries: all rules and none, some rules alone, all without one, unknown sizes; 1
/// and 2 threads.
std::vector<Setting> some_settings(std::uint64_t seed, std::size_t rules_alone);
std::vector<Setting> every_setting();

}  // namespace lamina::testing
