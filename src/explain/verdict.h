#pragma once
/// The verdict at the end of `lamina explain`: five sentences, and a command to try.
#include <string>
#include <vector>

#include "explain/findings.h"
#include "explain/product_costs.h"

namespace lamina {

/// From the plans, what rules and kernels refused, and estimates of the machine that is planned for. `asked`:
/// the options that the line repeats, in pairs ("--shape", "x=1,3,224,224"). `here`: plans are for this
/// machine.
ModelVerdict verdict_of(const Findings& all, const Compiled& compiled, const std::string& model,
                        const std::vector<std::string>& asked, bool here);

}  // namespace lamina
