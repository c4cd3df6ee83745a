#pragma once
/// A quantised ONNX model: the file it was read from, with QuantizeLinear and DequantizeLinear in it.
#include "formats/onnx/edit/model.h"
#include "quantise/prepare.h"
#include "quantise/scheme.h"

namespace lamina {

/// The file of a graph, and what of the graph stands where in it.
class OnnxFile {
 public:
  /// `graph`: as it was read from the file. The file becomes one of an operator set that has what is put into
  /// it. Throws Error(unsupported) where that cannot be.
  OnnxFile(const ModelSource& source, const Graph& graph);

  /// Whether both are nodes of the file (and not of a function, say), the one a layer that can change.
  bool can_absorb(const Absorbed& absorbed) const;
  /// Gives a reason to layers that are no nodes of the file. `graph`: as it was read.
  void require_nodes(const Graph& graph, std::vector<Layer>& layers) const;

  /// Sums that are no Add or Sub by themselves in the file, so that their constants cannot change. `graph`:
  /// as it was read.
  std::set<NodeId> fixed_sums(const Graph& graph) const;

  /// The file's bytes. `read`: the graph as it was read, `graph`: what was prepared of it, with the same ids.
  std::string quantised(const Graph& read, const Graph& graph, const std::vector<Absorbed>& absorbed,
                        const Scheme& scheme) const;

 private:
  onnx::EditModel model_;
  std::map<std::string, std::size_t, std::less<>> makers_;  ///< index of the node that makes a value
};

}  // namespace lamina
