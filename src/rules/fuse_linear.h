#pragma once
/// The two directions of fuse-linear. What they find is what is to be made.
#include "rules/linear.h"

namespace lamina {

/// The convolution or matrix product that makes a value. Transposes and Reshapes that nobody else reads may
/// stand between, as behind channels-last convolutions, where it is certain which axis holds its channels.
struct HostAbove {
  NodeId host;
  std::vector<NodeId> moves;  ///< from the lowest up
  std::size_t axis = 0;       ///< of the value: the host's output channels
};
std::optional<HostAbove> host_above(const Match& m, ValueId x);
/// Whether the layer above takes the step: it needs one number per output channel, and constant weights if it
/// scales.
Verdict takes_behind(const Match& m, const HostAbove& above, const LinearStep& step);
/// The root is a step behind a host.
Found<Making> fuse_behind(const Match& m);

/// The root is a host that may read steps.
bool reads_steps(const Graph& graph, const Node& host);
Found<Making> fuse_before(const Match& m);

}  // namespace lamina
