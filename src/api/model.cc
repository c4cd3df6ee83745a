#include "lamina/model.h"

#include <algorithm>
#include <cstring>
#include <ostream>

#include "api/inside.h"
#include "base/error.h"
#include "base/guard.h"
#include "base/text.h"

namespace lamina {
namespace {

/// The parts of a model in memory as files; copied when nobody keeps them.
class Parts {
 public:
  explicit Parts(const ModelBytes& bytes) : bytes_(bytes) {}

  std::shared_ptr<const MappedFile> file(std::string name, std::span<const std::byte> bytes) const {
    if (bytes.data() == nullptr && !bytes.empty())
      fail(ErrorCode::bad_input, "{}: a null pointer to {} bytes", name, bytes.size());
    if (bytes_.owner) return MappedFile::in_memory(std::move(name), bytes, bytes_.owner);
    const auto copy =
        std::make_shared<Tensor>(ElementType::u8, Dims{static_cast<std::int64_t>(bytes.size())});
    if (!bytes.empty()) std::memcpy(copy->raw(), bytes.data(), bytes.size());
    return MappedFile::in_memory(std::move(name), {copy->raw(), bytes.size()}, copy);
  }

  MemorySource source() const {
    MemorySource::Files external;
    for (const auto& [location, data] : bytes_.external_data) external[location] = file(location, data);
    return {file(bytes_.name, bytes_.model),
            bytes_.weights.empty() ? nullptr : file(bytes_.name + " (weights)", bytes_.weights),
            std::move(external)};
  }

 private:
  const ModelBytes& bytes_;
};

}  // namespace

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

const LoadedModel& Inside::of(const Model& model) {
  if (!model.impl_) fail(ErrorCode::bad_call, "the model was moved from");
  return *model.impl_;
}

std::shared_ptr<const LoadedModel> Inside::shared(const Model& model) {
  of(model);
  return model.impl_;
}

Model::Model(const std::string& path)
    : impl_(guarded("Model", [&] { return std::make_shared<LoadedModel>(FileSource(path)); })) {}

Model Model::from_memory(const ModelBytes& bytes) {
  return guarded("Model::from_memory",
                 [&] { return Model(std::make_shared<LoadedModel>(Parts(bytes).source())); });
}

const std::vector<Port>& Model::inputs() const {
  return guarded(
      "Model::inputs", [&]() -> auto& { return Inside::of(*this).inputs(); });
}
const std::vector<Port>& Model::outputs() const {
  return guarded(
      "Model::outputs", [&]() -> auto& { return Inside::of(*this).outputs(); });
}
std::optional<std::size_t> Model::find_input(std::string_view name) const {
  return guarded("Model::find_input", [&] { return find_port(Inside::of(*this).inputs(), name); });
}
std::optional<std::size_t> Model::find_output(std::string_view name) const {
  return guarded("Model::find_output", [&] { return find_port(Inside::of(*this).outputs(), name); });
}
const std::vector<Port>& Model::variables() const {
  return guarded(
      "Model::variables", [&]() -> auto& { return Inside::of(*this).variables(); });
}
const std::map<std::string, std::string>& Model::metadata() const {
  return guarded(
      "Model::metadata", [&]() -> auto& { return Inside::of(*this).loaded().metadata; });
}
const std::string& Model::format() const {
  return guarded(
      "Model::format", [&]() -> auto& { return Inside::of(*this).loaded().format; });
}
const std::vector<std::string>& Model::warnings() const {
  return guarded(
      "Model::warnings", [&]() -> auto& { return Inside::of(*this).warnings(); });
}
const std::vector<std::string>& Model::unsupported() const {
  return guarded(
      "Model::unsupported", [&]() -> auto& { return Inside::of(*this).unsupported(); });
}

std::string version() {
  return guarded("version", [] { return std::string("lamina " LAMINA_VERSION); });
}

}  // namespace lamina
