#pragma once
/// The body of a loop with its port map, as the file has it.
#include <map>
#include <string>
#include <vector>

#include "formats/ir/layer_context.h"

namespace lamina::ir {

constexpr std::int64_t kNoPort = -1;

/// A line of a port map.
struct Mapping {
  std::int64_t external = kNoPort;
  std::uint32_t internal = 0;  ///< layer of the body
  bool sliced = false;
  std::int64_t axis = 0, start = 0, end = -1, stride = 1, part_size = 1;
  std::string purpose;
};

/// A body with its port map, checked.
struct Body {
  Network net;
  std::vector<Mapping> inputs, outputs;         ///< to Parameters, from Results
  std::map<std::uint32_t, std::uint32_t> back;  ///< Parameter -> Result
};

/// How the line slices (its axis is not looked at).
void read_slicing(const XmlFile& xml, pugi::xml_node line, Mapping& mapping);
void convert_tensor_iterator(LayerContext& c, Body body);

}  // namespace lamina::ir
