#include "c_interface/ports.h"

#include "c_interface/call.h"
#include "c_interface/structs.h"
#include "c_interface/types.h"

namespace lamina::c_interface {

Ports::Ports(std::vector<Port> ports) : ports_(std::move(ports)) {
  shown_.reserve(ports_.size());
  for (const auto& port : ports_) {
    auto& row = shown_.emplace_back();
    for (std::size_t d = 0; d < port.shape.size(); ++d)
      row.dimension_names.push_back(d < port.dimension_names.size() ? port.dimension_names[d].c_str() : "");
    row.text = to_string(port);
    row.value.tensor = port.value;
  }
}

void Ports::show(std::size_t index, lamina_c_port* to) const {
  if (index >= size()) fail(ErrorCode::bad_input, "port {}: there are {}", index, size());
  const auto& port = ports_[index];
  const auto& row = shown_[index];
  lamina_c_port out{};
  out.name = port.name.c_str();
  out.name_length = port.name.size();
  out.type = number_of(port.type);
  out.rank = port.ranked ? static_cast<std::int32_t>(port.shape.size()) : -1;
  out.dims = port.shape.data();
  out.dimension_names = row.dimension_names.data();
  out.text = row.text.c_str();
  out.value = row.value.tensor.valid() ? &row.value : nullptr;
  give(to, out, "lamina_c_port");
}

std::size_t Ports::find(const char* name) const {
  for (std::size_t i = 0; i < size(); ++i)
    if (ports_[i].name == name) return i;
  return LAMINA_C_NONE;
}

const Ports& PortsOfModel::of(std::int32_t kind) const {
  if (kind < LAMINA_C_INPUT || kind > LAMINA_C_VARIABLE)
    fail(ErrorCode::bad_input, "{} is no kind of ports, wanted 0 (inputs), 1 (outputs) or 2 (variables)",
         kind);
  return kinds_[kind];
}

}  // namespace lamina::c_interface
