#pragma once
/// The page about the rewriting of a model that was compiled.
#include <string>
#include <vector>

#include "api/compiled.h"

namespace lamina {

/// Rewrites the model once more, with these inputs' sizes, and gives the rewrites as one page
/// (draw/rewrite_report.h). `name`: of the model's file. `progress` may be empty.
std::string rewriting_page(const std::string& name, const Compiled& compiled,
                           const std::vector<Tensor>& inputs, const ProgressCallback& progress);

}  // namespace lamina
