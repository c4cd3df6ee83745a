#pragma once
/// Samples as the user gives them.
#include <vector>

#include "lamina/model.h"
#include "lamina/quantize.h"

namespace lamina {

/// Throws Error(bad_input) that names the sample and the input.
void require_fit(const std::vector<Port>& ports, const std::vector<Tensor>& sample, std::size_t index);

/// The same samples, each of which is checked when it is asked for. `ports` must outlive them.
Samples checked_samples(const Samples& samples, const std::vector<Port>& ports);

}  // namespace lamina
