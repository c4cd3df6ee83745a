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
  if (!given_.empty()) return MappedFile::open(wanted);
  std::error_code error;
  if (!std::filesystem::exists(std::filesystem::symlink_status(wanted, error))) return nullptr;
  return beside(path(wanted).filename().string(), "give its path (ReadOptions::weights, --weights)");
}

std::shared_ptr<const MappedFile> FileSource::external_data(const std::string& location) const {
  const path relative = path(location).lexically_normal();
  if (location.empty() || relative.is_absolute() || *relative.begin() == "..")
    fail(ErrorCode::bad_file, "its data is in \"{}\", wanted a file in the model's folder", location);
  return beside(relative.string(), "copy the model with its data into one folder (cp -L)");
}

std::shared_ptr<const MappedFile> FileSource::beside(const std::string& name, const char* remedy) const {
  const auto folder = path(model()->path()).parent_path();
  if (files_ == ExternalFiles::none)
    fail(ErrorCode::over_limit, "{}: is a file beside the model, EXTERNAL_FILES is none",
         (folder / name).string());
  if (auto file = MappedFile::open_beneath(folder.string(), name)) return file;
  fail(ErrorCode::bad_file, "{}: reached through a symbolic link, which is not followed: {}",
       (folder / name).string(), remedy);
}

MemorySource::MemorySource(std::shared_ptr<const MappedFile> model, std::shared_ptr<const MappedFile> weights,
                           const Files& external)
    : ModelSource(std::move(model)), weights_(std::move(weights)) {
  for (const auto& [location, file] : external) external_[path(location).lexically_normal().string()] = file;
}

std::shared_ptr<const MappedFile> MemorySource::external_data(const std::string& location) const {
  const auto it = external_.find(path(location).lexically_normal().string());
  if (it == external_.end())
    fail(ErrorCode::bad_file, "its data is in \"{}\", which was not given with the model in memory",
         location);
  return it->second;
}

}  // namespace lamina
