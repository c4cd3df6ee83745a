#pragma once
/// The shapes that ReadOptions::input_shapes and Model::output_ports ask for.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "graph/shape.h"
#include "lamina/model.h"

namespace lamina {

using ShapesByName = std::map<std::string, Shape, std::less<>>;

/// "a size from 5 to 2, wanted sizes from 0 on, or -1 for any"; empty where all sizes can be.
std::string wrong_sizes(const PartialShape& sizes);
/// Requires sizes that can be.
Shape shape_of(const PartialShape& sizes);
/// Throws Error(bad_option) for sizes that cannot be.
ShapesByName shapes_of(const NamedShapes& shapes);

std::vector<std::string> names_of(const std::vector<Port>& ports);
/// Throws Error(bad_input), which begins with the path, for a shape of what is not one of these inputs.
void require_inputs(const std::vector<std::string>& names, const NamedShapes& shapes,
                    const std::string& path);

/// True if `asked` replaces no size that `own` fixes.
bool keeps_sizes(const Shape& own, const Shape& asked);

/// Throws Error(bad_input): the model cannot have these shapes, for that reason.
[[noreturn]] void refuse_shapes(const ShapesByName& shapes, const char* reason);

/// Runs the body and returns its result. What the body finds wrong with the model is the fault of these
/// shapes: with its own the model can be read.
template <class F>
auto blaming_input_shapes(const ShapesByName& shapes, F&& body) {
  try {
    return body();
  } catch (const Error& e) {
    if (e.code() != ErrorCode::bad_file || shapes.empty()) throw;
    refuse_shapes(shapes, e.what());
  }
}

}  // namespace lamina
