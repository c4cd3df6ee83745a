#pragma once
/// Ports: what the user calls inputs, outputs and variables.
#include "graph/shape.h"
#include "lamina/model.h"

namespace lamina {

Port port_of(const std::string& name, const TensorType& type);

std::optional<std::size_t> find_port(const std::vector<Port>& ports, std::string_view name);
/// Throws Error(bad_input): `there is no input "y", there are: "x", "z"`.
std::size_t index_of(const std::vector<Port>& ports, std::string_view name, std::string_view what);

}  // namespace lamina
