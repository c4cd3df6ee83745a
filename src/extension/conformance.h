#pragma once
/// Tries operations of libraries on seeded inputs: shapes, layouts, in place, memory, NaN, threads. Each
/// trial runs in a process of its own, so that whatever a kernel does the process lives.
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "extension/extensions.h"
#include "extension/kernel.h"
#include "graph/graph.h"
#include "lamina/check.h"

namespace lamina {

using ConformanceRow = CustomLayerTrial;

/// Time limit of each trial.
constexpr std::chrono::seconds kTrialTime{20};
struct SubprocessTrial {
  std::string problem;
  bool in_time = true;
};
/// What the body says in a process of its own, or what it did there; `where` is left out of it: rows say it.
SubprocessTrial tried_in_subprocess(const std::string& where, const std::function<std::string()>& body,
                                    std::chrono::seconds most);

/// All nodes of libraries' operations in the graph, whose shapes are known as far as they can be, those in
/// bodies included; each operation with the same types and attributes once. A trial that does not end is its
/// node's last one.
std::vector<ConformanceRow> check_extensions(const Graph& graph, std::chrono::seconds most = kTrialTime);

/// All operations of the library without a model: on the samples that they have, else on some usual inputs.
std::vector<ConformanceRow> check_operations(const Extension& extension,
                                             std::chrono::seconds most = kTrialTime);

}  // namespace lamina
