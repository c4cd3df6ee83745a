#include "formats/source.h"

#include <filesystem>

#include "base/error.h"

namespace lamina {
namespace {
using std::filesystem::path;
}

std::shared_ptr<const MappedFile> FileSource::weights() const {
  return MappedFile::open(path(model()->path()).replace_extension(".bin").string());
}

std::shared_ptr<const MappedFile> FileSource::external_data(const std::string& location) const {
  const path relative = path(location).lexically_normal();
  if (location.empty() || relative.is_absolute() || *relative.begin() == "..")
    fail(ErrorCode::bad_file, "its data is in \"{}\", wanted a file in the model's folder", location);
  return MappedFile::open((path(model()->path()).parent_path() / relative).string());
}

MemorySource::MemorySource(std::shared_ptr<const MappedFile> model, std::shared_ptr<const MappedFile> weights,
                           Files external)
    : ModelSource(std::move(model)), weights_(std::move(weights)) {
  for (auto& [location, file] : external)
    external_[path(location).lexically_normal().string()] = std::move(file);
}

std::shared_ptr<const MappedFile> MemorySource::weights() const {
  if (!weights_) fail(ErrorCode::bad_file, "no weights were given with the model in memory");
  return weights_;
}

std::shared_ptr<const MappedFile> MemorySource::external_data(const std::string& location) const {
  const auto it = external_.find(path(location).lexically_normal().string());
  if (it == external_.end())
    fail(ErrorCode::bad_file, "its data is in \"{}\", which was not given with the model in memory",
         location);
  return it->second;
}

}  // namespace lamina
