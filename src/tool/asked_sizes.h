#pragma once
/// The sizes of inputs that -shape gives.
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tool/benchmark.h"

namespace lamina::tool {

/// A size of -shape: a number, or the range in which it may lie.
struct Size {
  std::int64_t least = 0, most = 0;
  bool open() const { return least != most; }
};
using Sizes = std::vector<Size>;
bool any_open(const Sizes& sizes);
/// "1,3,64..128,?"
std::string to_string(const Sizes& sizes);

inline constexpr std::int64_t kAnySize = std::int64_t{1} << 40;

/// "1,3,224,224", "?,3,-1,1..10". Throws UsageError, which begins with the option.
Sizes sizes_of(const std::string& option, const std::string& list);
/// The input of that name, or the only input if the name is empty. Throws UsageError, Error(bad_input).
std::string input_named(const std::string& option, const std::string& name,
                        const std::vector<std::string>& inputs);
std::string input_named(const std::string& option, const std::string& name, const std::vector<Port>& ports);

/// The values of --shape, by input in the order given.
std::vector<std::pair<std::string, Sizes>> shape_sizes(const std::vector<std::string>& values,
                                                       const std::vector<std::string>& inputs);
/// The sizes that -shape gives, by input.
std::map<std::string, Sizes> asked_sizes(const BenchmarkCommand& o, const std::vector<Port>& ports);

}  // namespace lamina::tool
