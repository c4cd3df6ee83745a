#pragma once
/// What ran, as OpenVINO writes its "execution graph": an IR whose layers are the steps of the plan. Netron
/// opens it.
#include "api/layer_outcome.h"
#include "explain/layers.h"

namespace lamina {

/// The XML document. Layers are the inputs, the steps in the order of execution, what stands between them
/// without running, and the outputs; constants are left out. Attributes have OpenVINO's names
/// (originalLayersNames, primitiveType, execTimeMcs, ...), with some of our own beside them. Times come from
/// the profile, which must have seen a run.
std::string runtime_graph(const std::string& name, const Compiled& compiled, const Profile& profile);

}  // namespace lamina
