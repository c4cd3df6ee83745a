#pragma once
/// Input tensors from files.
#include <optional>
#include <string>
#include <vector>

#include "tool/inputs.h"

namespace lamina::tool {

/// The shape that --shape gives for the input; null if it gives none.
const Dims* asked_shape(const Port& port, const AskedShapes& shapes);
/// The shape that --shape gives for the port, else its own dimensions, with -1 where they are unknown.
Dims shape_of(const Port& port, const AskedShapes& shapes);
/// The dimension that is the wanted batch, or may be; nothing where the model fixes another.
std::optional<std::size_t> free_batch(const Port& port, const InputOptions& options,
                                      const AskedShapes& shapes);

/// The tensors that --input and --inputs give; the others stay empty.
std::vector<Tensor> given_inputs(const std::vector<Port>& ports, const InputOptions& options,
                                 const AskedShapes& shapes, std::vector<std::string>& notes);

}  // namespace lamina::tool
