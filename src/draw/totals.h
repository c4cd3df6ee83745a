#pragma once
/// Sums over all nodes of a graph, bodies of control flow included.
#include <cstdint>
#include <map>
#include <string>

#include "graph/graph.h"

namespace lamina {

struct Totals {
  std::map<std::string, std::size_t> operators;  ///< by name, without stages of epilogues
  std::map<OpFamily, std::size_t> families;
  std::size_t nodes = 0;   ///< sum of these
  std::size_t stages = 0;  ///< operators in epilogues
  std::map<std::string, std::uint64_t> parameter_types;
  std::uint64_t parameters = 0, parameter_bytes = 0;  ///< of all constants, equal ones each
  double multiply_adds = 0;  ///< of convolutions, matrix products and recurrent networks
  double others = 0;         ///< of the rest, about one per element
  double bytes = 0;          ///< read and written when each operand passes once
  bool all_known = true;     ///< false: shapes of what multiplies are missing
  bool of_one = false;       ///< the batch, the only size that is missing, was taken for 1
  /// As papers count them: two for each multiply-add, nothing for the rest.
  double flops() const { return 2 * multiply_adds; }
};

Totals graph_totals(const Graph& graph);

/// "4.1e+09 (8.2 GFLOP)", with "at least" where shapes are unknown, "for a batch of 1" where that was taken.
std::string work_text(const Totals& totals);

}  // namespace lamina
