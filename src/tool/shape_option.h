#pragma once
/// The sizes of inputs that --shape gives.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tool/benchmark.h"

namespace lamina::tool {

inline bool is_open(const Dimension& size) { return size.least != size.most; }
bool any_open(const PartialShape& sizes);
/// "1,3,64..128,?"
std::string to_string(const PartialShape& sizes);

/// "1,3,224,224", "?,3,-1,1..10". Throws UsageError, which begins with the option.
PartialShape sizes_of(const std::string& option, const std::string& list);
/// The input of that name, or the only input if the name is empty. Throws UsageError, Error(bad_input).
std::string input_named(const std::string& option, const std::string& name,
                        const std::vector<std::string>& inputs);
std::string input_named(const std::string& option, const std::string& name, const std::vector<Port>& ports);

/// The values of --shape, by input in the order given.
std::vector<std::pair<std::string, PartialShape>> shape_sizes(const std::vector<std::string>& values,
                                                              const std::vector<std::string>& inputs);
/// Those of a benchmark, by input.
std::map<std::string, PartialShape> asked_sizes(const BenchmarkCommand& o, const std::vector<Port>& ports);

}  // namespace lamina::tool
