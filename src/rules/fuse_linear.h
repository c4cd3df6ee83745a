#pragma once
/// The two directions of fuse-linear. What they find is what is to be made.
#include "rules/linear.h"

namespace lamina {

/// A convolution or matrix product takes the step: one number per output channel, and constant weights where
/// it scales.
Verdict takes_behind(const Match& m, NodeId host, const LinearStep& step);
/// The root is a step behind a host.
Found<Making> fuse_behind(const Match& m);

/// The root is a host that may read steps.
bool reads_steps(const Graph& graph, const Node& host);
Found<Making> fuse_before(const Match& m);

}  // namespace lamina
