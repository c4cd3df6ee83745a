#pragma once
/// Input tensors from files.
#include <optional>
#include <string>
#include <vector>

#include "tool/inputs.h"

namespace lamina::tool {

/// What is asked for that input; null: nothing.
const Dims* asked_shape(const Port& port, const AskedShapes& shapes);
/// What --shape says of the port, else its own dimensions, -1 where unknown.
Dims shape_of(const Port& port, const AskedShapes& shapes);
/// The dimension that is the wanted batch, or may be; nothing where the model fixes another.
std::optional<std::size_t> free_batch(const Port& port, const InputOptions& options,
                                      const AskedShapes& shapes);

/// From --input and --inputs; those that are given nothing stay empty.
std::vector<Tensor> given_inputs(const std::vector<Port>& ports, const InputOptions& options,
                                 const AskedShapes& shapes, std::vector<std::string>& notes);

}  // namespace lamina::tool
