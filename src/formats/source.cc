#include "formats/source.h"

#include <filesystem>

#include "base/error.h"

namespace lamina {
namespace {
using std::filesystem::path;
}

std::shared_ptr<const MappedFile> ModelSource::weights(const std::string& extension) const {
  if (auto file = companion(extension)) return file;
  const auto wanted = companion_path(extension);
  if (wanted.empty()) fail(ErrorCode::bad_file, "no weights were given with the model in memory");
  return MappedFile::open(wanted);  // says what is wrong
}

std::string FileSource::companion_path(const std::string& extension) const {
  return given_.empty() ? path(model()->path()).replace_extension(extension).string() : given_;
}

std::shared_ptr<const MappedFile> FileSource::companion(const std::string& extension) const {
  const auto wanted = companion_path(extension);
  std::error_code error;
  if (given_.empty() && !std::filesystem::exists(wanted, error)) return nullptr;
  return MappedFile::open(wanted);
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

std::shared_ptr<const MappedFile> MemorySource::external_data(const std::string& location) const {
  const auto it = external_.find(path(location).lexically_normal().string());
  if (it == external_.end())
    fail(ErrorCode::bad_file, "its data is in \"{}\", which was not given with the model in memory",
         location);
  return it->second;
}

}  // namespace lamina
