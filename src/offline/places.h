#pragma once
/// Places in a graph by the names of the file: of layers, and of the tensors between them.
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace lamina {

/// A place where a graph may be cut: what a layer reads by one input, or a value for all that read it.
struct CutPlace {
  std::vector<Use> readers;  ///< nodes of the layer; none: the value itself
  ValueId value;             ///< what is read there
  std::string name;          ///< of the input that is to take its place
};

/// Reads "name", "port:name" and "name:port". A layer goes before a tensor of its name, and a name that holds
/// colons before ports. All functions throw FaqError(bad_input).
class Places {
 public:
  /// The graph must outlive it, unchanged.
  explicit Places(const Graph& graph);

  /// Whether there is such a place, or at least what its ports would be of.
  bool knows(const std::string& text) const { return is_known(parse(text).name); }
  /// What the layer gives, by default by its first output; what it reads by an input port.
  ValueId output(const std::string& text) const;
  /// A model's input alone, an output of a layer, one of its inputs, or all of them that are no constants.
  std::vector<CutPlace> inputs(const std::string& text) const;

 private:
  /// A layer of the file as the nodes that stand for it see it.
  struct Layer {
    struct Input {
      ValueId value;  ///< invalid: left out
      std::vector<Use> readers;
    };
    std::vector<Input> inputs;  ///< what comes from other layers, constants too
    std::vector<ValueId> outputs;
  };
  struct Name {
    std::string name;
    int in = -1, out = -1;
  };
  Name parse(const std::string& text) const;
  bool is_known(const std::string& name) const;
  const std::vector<NodeId>* nodes_of(const std::string& name) const;
  Layer layer(const std::vector<NodeId>& nodes) const;
  ValueId value_named(const std::string& name) const;
  ValueId layer_output(const Name& name, const Layer& layer) const;
  [[noreturn]] void unknown(const std::string& name) const;

  const Graph& graph_;
  std::map<std::string, std::vector<NodeId>, std::less<>> layers_;
};

}  // namespace lamina
