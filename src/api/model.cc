#include "lamina/model.h"

#include <cstring>

#include "api/at_work.h"
#include "api/inside.h"
#include "base/error.h"
#include "base/guard.h"
#include "extension/extensions.h"

namespace lamina {
namespace {

/// The parts of a model in memory as files; copied when nobody keeps them.
class PassedParts {
 public:
  explicit PassedParts(const ModelBytes& bytes) : bytes_(bytes) {}

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

Model Inside::changed(const Model& model, Graph graph) {
  return Model(std::make_shared<const LoadedModel>(of(model), std::move(graph)));
}

const LoadedModel& Inside::of(const Model& model) {
  if (!model.impl_) fail(ErrorCode::bad_call, "the model was moved from");
  return *model.impl_;
}

std::shared_ptr<const LoadedModel> Inside::shared(const Model& model) {
  of(model);
  return model.impl_;
}

Model::Model(const std::string& path, const ReadOptions& options)
    : impl_(guarded("Model", [&] {
        follow_process();  // what is opened is noted, before the work on it begins
        return std::make_shared<LoadedModel>(FileSource(path, options.weights, options.limits.external_files),
                                             options);
      })) {}

void register_extension(const std::string& name, int (*entry)(const lamina_host*, lamina_registrar*)) {
  guarded("register_extension", [&] {
    const AtWork here;
    add_linked_extension(name, entry);
  });
}

Model Model::from_memory(const ModelBytes& bytes, const ReadOptions& options) {
  return guarded("Model::from_memory",
                 [&] { return Model(std::make_shared<LoadedModel>(PassedParts(bytes).source(), options)); });
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
      "Model::metadata", [&]() -> auto& { return Inside::of(*this).described().metadata; });
}
const std::string& Model::format() const {
  return guarded(
      "Model::format", [&]() -> auto& { return name_of(Inside::of(*this).described().format); });
}
bool Model::is_compiled() const {
  return guarded("Model::is_compiled", [&] { return Inside::of(*this).compiled() != nullptr; });
}
const std::vector<std::vector<Dims>>& Model::compiled_for() const {
  return guarded(
      "Model::compiled_for", [&]() -> auto& { return Inside::of(*this).compiled_for(); });
}
std::vector<Port> Model::output_ports(const NamedShapes& shapes) const {
  return guarded("Model::output_ports", [&] { return Inside::of(*this).output_ports(shapes); });
}
const std::vector<std::string>& Model::warnings() const {
  return guarded(
      "Model::warnings", [&]() -> auto& { return Inside::of(*this).warnings(); });
}
std::vector<std::string> Model::files() const {
  return guarded("Model::files", [&] {
    std::vector<std::string> out;
    for (const auto& part : Inside::of(*this).parts())
      if (part.file->identity()) out.push_back(part.file->path());
    return out;
  });
}
const std::vector<std::string>& Model::unsupported() const {
  return guarded(
      "Model::unsupported", [&]() -> auto& { return Inside::of(*this).unsupported(); });
}

std::string version() {
  return guarded("version", [] { return std::string("lamina " LAMINA_VERSION); });
}

}  // namespace lamina
