#pragma once
/// Kernel overrides: kernels that the user selects, whatever the estimates say.
#include <map>
#include <string>
#include <vector>

#include "kernels/kernel.h"

namespace lamina {

/// Overrides "WHAT=LABEL". WHAT is a layer's name or a kind of operator ("Convolution" or short
/// "conv"; a name takes precedence), LABEL an offer's label or its first words ("native_1x1" for
/// native_1x1_avx2_f32). The last override that fits a node counts.
class KernelOverrides {
 public:
  /// Overrides for layers or operators that the graph does not have are left out (check_overrides).
  KernelOverrides(const std::vector<std::string>& overrides, const Graph& graph);

  /// Marks the offers that an override excludes. An override without such an offer leaves the choice free.
  void apply(const NodeView& view, Answers& answers) const;
  /// Throws Error(bad_option) for an override for a layer that none of its nodes has an offer for; it names
  /// those that they have.
  void check(const Graph& graph, const std::map<NodeId, Answers>& answers) const;

 private:
  struct Override {
    std::string what, label;
    bool layer;
  };
  const Override* override_for(const Graph& graph, NodeId id) const;
  static bool is_offered(const Override& forced, const Answers& answers);
  static bool may_be_in_parts(const Override& forced, const Node& node, const Answers& answers);

  std::vector<Override> overrides_;
};

/// Throws Error(bad_option) for an override without "=", name or label, or for what is neither a layer of the
/// graph as it was read nor a kind of operator.
void check_overrides(const std::vector<std::string>& overrides, const Graph& graph);

}  // namespace lamina
