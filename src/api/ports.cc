#include "api/ports.h"

#include <algorithm>
#include <ostream>

#include "base/error.h"
#include "base/guard.h"
#include "base/text.h"

namespace lamina {

Port port_of(const std::string& name, const TensorType& type) {
  Port p;
  p.name = name;
  p.type = type.element;
  p.ranked = type.shape.ranked();
  for (const auto& d : type.shape.dims()) {
    p.shape.push_back(d.known() ? d.size() : -1);
    p.dimension_names.push_back(d.known() ? "" : d.name());
  }
  return p;
}

std::optional<std::size_t> find_port(const std::vector<Port>& ports, std::string_view name) {
  for (std::size_t i = 0; i < ports.size(); ++i)
    if (ports[i].name == name) return i;
  return std::nullopt;
}

std::size_t index_of(const std::vector<Port>& ports, std::string_view name, std::string_view what) {
  if (const auto found = find_port(ports, name)) return *found;
  if (ports.empty()) fail(ErrorCode::bad_input, "there is no {} \"{}\": the model has none", what, name);
  constexpr std::size_t kNames = 8;
  std::string names;
  for (std::size_t i = 0; i < std::min(ports.size(), kNames); ++i)
    names += (i ? ", \"" : "\"") + clipped(ports[i].name, 60) + "\"";
  if (ports.size() > kNames) names += fmt::format(" and {} more", ports.size() - kNames);
  fail(ErrorCode::bad_input, "there is no {} \"{}\", there are: {}", what, name, names);
}

std::string to_string(const Port& port) {
  return guarded("to_string", [&] {
    std::string out(name_of(port.type));
    if (!port.ranked) return out + "[...]";
    out += "[";
    for (std::size_t i = 0; i < port.shape.size(); ++i) {
      if (i) out += ",";
      const bool named = i < port.dimension_names.size() && !port.dimension_names[i].empty();
      if (port.shape[i] >= 0)
        out += std::to_string(port.shape[i]);
      else
        out += named ? port.dimension_names[i] : "?";
    }
    return out + "]";
  });
}

std::ostream& operator<<(std::ostream& out, const Port& port) {
  return guarded("operator<<", [&]() -> std::ostream& {
    return out << one_line(fmt::format("{}: {}", port.name, to_string(port)));
  });
}

}  // namespace lamina
