#pragma once
/// Element types at the border of a model: -ip, -op, -iop of benchmark_app.
#include "tool/benchmark.h"

namespace lamina::tool {

/// `types`: "ip=f32", "op=FP16", "iop=x:f16, y:f32". The model's own are all there are: others throw
/// UsageError that names the input or output, unknown names Error(bad_input).
void check_border_types(const std::vector<std::string>& types, const Model& model);

}  // namespace lamina::tool
