#pragma once
/// Counters of layers as benchmark_app shows and writes them.
#include <string>
#include <vector>

#include "tool/benchmark.h"

namespace lamina::tool {

/// The rows in the order of -pcsort: "sort": slowest first; "simple_sort": the same, executed rows only; else
/// that of the model.
Counters sorted_as(Counters rows, const std::string& order);
/// The means over the requests, row by row.
Counters mean_counters(const std::vector<Counters>& requests);

/// The lines of the table of -pc, without line ends. `cut`: texts that are longer than their column are cut.
std::vector<std::string> counter_lines(const Counters& rows, bool cut = true);

/// The text of a report. `type`: "average" and "sorted" (one table), "detailed" (one per request).
std::string counter_csv(const std::string& type, const std::vector<Counters>& tables);
std::string counter_json(const std::string& type, const std::vector<Counters>& tables);

}  // namespace lamina::tool
