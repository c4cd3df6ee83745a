#pragma once
/// Layers and edges as the file has them, checked and sorted, before they become operators.
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/ir/xml.h"
#include "graph/shape.h"

namespace lamina::ir {

struct Port {
  std::int64_t id = 0;
  ElementType element = ElementType::undefined;  ///< informative, as the shape is
  Shape shape;
  std::string name;  ///< the first of its tensor names, often empty
};

/// An output of a layer.
struct Feed {
  static constexpr std::uint32_t kNone = UINT32_MAX;
  std::uint32_t layer = kNone, port = 0;
  bool none() const { return layer == kNone; }
};

struct Layer {
  std::int64_t id = 0;
  std::string name, type, version;
  int opset = 0;  ///< of version "opsetN"; 0 for "extension" and the like
  pugi::xml_node xml, data;
  std::vector<Port> inputs, outputs;
  std::vector<Feed> feeds;  ///< one per input
  std::vector<bool> used;   ///< one per output: somebody reads it

  bool is(std::string_view wanted) const;  ///< true if it has that type, in any case
};

struct Network {
  std::vector<Layer> layers;
  std::vector<std::uint32_t> order;  ///< topological; near the file's order
  std::unordered_map<std::int64_t, std::uint32_t> by_id;

  std::vector<std::uint32_t> all(std::string_view type) const;  ///< layers of that type in file order
};

/// Reads <layers> and <edges> below `node` (a <net> or a body). Throws on every inconsistency.
Network read_network(const XmlFile& xml, pugi::xml_node node);

/// Reads the layers only, for readers that add layers before the order is found: some feeds may be none();
/// afterwards every layer must be fed, and is sorted.
Network read_layers(const XmlFile& xml, pugi::xml_node node);
void sort_layers(const XmlFile& xml, Network& net);

/// What the layer's output is called: its tensor name, else the layer's name (".port" when there are
/// several).
std::string output_name(const Layer& layer, std::size_t port);

}  // namespace lamina::ir
