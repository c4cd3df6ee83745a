#pragma once
#include "formats/ir/builder.h"

namespace lamina::ir {

/// <pre-process> of the versions to 10: means that are subtracted from an input before anything else.
void add_pre_process(Reading& reading, GraphBuilder& builder, const std::vector<std::uint32_t>& parameters);

}  // namespace lamina::ir
