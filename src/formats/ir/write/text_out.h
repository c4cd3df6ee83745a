#pragma once
/// How IR spells types, shapes and attributes when it is written; text.h reads them.
#include <string>

#include "graph/op.h"

namespace lamina::ir {

/// "FP32", "I64", "BOOL", ...: of ports.
std::string_view precision_text(ElementType type);
/// "f32", "dynamic": in attributes.
std::string element_type_text(ElementType type);
/// "1,3,?,2..8,..5", "..." for an unknown rank.
std::string shape_text(const Shape& shape);
std::string dims_text(const Dims& dims);
/// Names in one text: a comma inside a name is "\,".
std::string names_text(const Strings& names);
/// Lists by commas, the shortest numbers that are read as the same. Tensors throw.
std::string attribute_text(const Attribute& value);

}  // namespace lamina::ir
