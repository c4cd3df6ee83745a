#pragma once
/// Nodes of a library's operations to try without a model.
#include "extension/declaration.h"
#include "graph/graph.h"

namespace lamina {

/// A graph of the one node that the text describes, as lamina_operation::samples say; constants without
/// values are seeded. Throws Error(bad_file) where the text is wrong, or the operation does not take that.
Graph sample_graph(const std::shared_ptr<const DeclaredOperation>& op, const std::string& text);

/// Texts to try where the library has none: usual shapes, optional inputs there and not. Some will not be
/// taken. None for operations with constants, whose shapes nobody can guess.
Strings usual_samples(const DeclaredOperation& op);

/// Numbers in -2 to 2; integers are 0 to 2, lest they be indices beyond anything.
Tensor seeded_tensor(ElementType type, const Dims& shape, std::uint64_t seed);

}  // namespace lamina
