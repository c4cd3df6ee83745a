#pragma once
/// Drawings of what runs.
#include "draw/drawing.h"
#include "explain/layers.h"

namespace lamina {

/// Steps of the plans with kernel, layout and precision; with times when there is a profile. Nodes for which
/// nothing runs (views) are small.
Drawing drawing_of(const std::vector<std::shared_ptr<const Plan>>& plans, const Profile* profile);

}  // namespace lamina
