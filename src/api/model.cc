#include "lamina/model.h"

#include "api/loaded_model.h"
#include "exec/variables.h"
#include "formats/formats.h"

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

std::string to_string(const Port& port) {
  std::string out(name_of(port.type));
  if (!port.ranked) return out + "[...]";
  out += "[";
  for (std::size_t i = 0; i < port.shape.size(); ++i) {
    if (i) out += ",";
    if (port.shape[i] >= 0)
      out += std::to_string(port.shape[i]);
    else
      out += port.dimension_names[i].empty() ? "?" : port.dimension_names[i];
  }
  return out + "]";
}

std::string to_string(const Unsupported& u) {
  std::string out = (u.domain.empty() ? "" : u.domain + ":") + u.type;
  if (u.version != 0) out += "-" + std::to_string(u.version);
  out += " (";
  for (std::size_t i = 0; i < u.nodes.size(); ++i) out += (i ? ", \"" : "\"") + u.nodes[i] + "\"";
  out += ")";
  return u.reason.empty() ? out : out + ": " + u.reason;
}

LoadedModel::LoadedModel(const std::string& path) : path_(path), loaded_(read_file(path)) {
  const auto& g = loaded_.graph;
  for (const auto v : g.inputs()) inputs_.push_back(port_of(g.value(v).name, g.type(v)));
  for (const auto& r : g.results()) outputs_.push_back(port_of(r.name, g.type(r.value)));
  for (const auto& u : loaded_.unsupported) unsupported_.push_back(to_string(u));
  try {
    for (const auto& v : variables_of(g)) variables_.push_back(port_of(v.name, v.type));
  } catch (const Error& e) {
    if (e.code() != ErrorCode::unsupported) throw;
    unsupported_.push_back(e.what());
  }
}

Model::Model(const std::string& path) : impl_(std::make_shared<LoadedModel>(path)) {}
const std::vector<Port>& Model::inputs() const { return impl_->inputs(); }
const std::vector<Port>& Model::outputs() const { return impl_->outputs(); }
const std::vector<Port>& Model::variables() const { return impl_->variables(); }
const std::map<std::string, std::string>& Model::metadata() const { return impl_->loaded().metadata; }
const std::string& Model::format() const { return impl_->loaded().format; }
const std::vector<std::string>& Model::unsupported() const { return impl_->unsupported(); }
std::shared_ptr<const LoadedModel> Model::share() const { return impl_; }

std::string version() { return "lamina " LAMINA_VERSION; }

}  // namespace lamina
