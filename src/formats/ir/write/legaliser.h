#pragma once
/// Builds the legalised graph node by node.
#include "formats/ir/write/legalise.h"

namespace lamina::ir {

class Legaliser {
 public:
  Legaliser(const Graph& from, int version);

  /// A parameter of a body that is known.
  void preset(std::size_t input, Tensor value);
  LegalGraph run();

  // For Legalisation.
  int version() const { return version_; }
  Graph& graph() { return to_; }
  std::vector<ValueId> emit(const Op& op, std::vector<ValueId> inputs, int outputs, const std::string& name,
                            std::vector<Graph> bodies = {});
  /// A name for something new that no value of the graph has.
  std::string fresh(const std::string& wanted);

 private:
  void node(const Node& node);
  std::vector<ValueId> values_of(const Node& node, const std::vector<ValueId>& inputs);
  std::vector<ValueId> inlined(const Graph& body, std::vector<ValueId> parameters);
  std::vector<Graph> legal_bodies(const Node& node);
  std::vector<ValueId> loop_inputs(const Node& node, std::vector<ValueId> inputs, const Graph& body,
                                   const std::string& name);
  void name_outputs(const Node& node, const std::vector<ValueId>& made, std::size_t first_value,
                    std::size_t first_node);
  ValueId read(ValueId value);

  const Graph& from_;
  const int version_;
  Graph to_;
  std::vector<ValueId> map_;  // by value of `from_`
  std::map<std::uint32_t, Strings> aliases_;
  std::size_t made_up_ = 0;
};

}  // namespace lamina::ir
