#pragma once
/// Tries operations of libraries on seeded inputs: shapes, layouts, in place, memory, NaN, threads. Each
/// trial runs in a process of its own, so that whatever a kernel does the process lives.
#include <string>
#include <vector>

#include "graph/graph.h"

namespace lamina {

struct ConformanceRow {
  std::string node;     ///< its label
  std::string op;       ///< "libgate.so: com.example:Gate"
  std::string tried;    ///< "channels_last (channels_last -> channels_last), f32[2,3,8,8]"
  std::string problem;  ///< a sentence; empty: none
  bool ok() const { return problem.empty(); }
};

/// All nodes of libraries' operations in the graph, whose shapes are known as far as they can be, those in
/// bodies included; each operation with the same types and attributes once.
std::vector<ConformanceRow> check_extensions(const Graph& graph);

}  // namespace lamina
