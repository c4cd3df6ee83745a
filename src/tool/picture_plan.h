#pragma once
/// Pictures of what runs.
#include "tool/layers.h"
#include "tool/picture.h"

namespace lamina::tool {

/// Steps of the plans with kernel, layout and precision; with times when there is a profile. Nodes for which
/// nothing runs (views) are small.
Picture picture_of(const std::vector<std::shared_ptr<const Plan>>& plans, const Profile* profile);

}  // namespace lamina::tool
