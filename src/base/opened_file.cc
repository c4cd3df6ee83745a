#include "base/opened_file.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/words.h"

namespace lamina {
namespace {

constexpr int kRead = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

/// Opens a file in one call; nothing if the kernel does not have it.
std::optional<OpenedFile> beneath_at_once(const OpenedFile& folder, const std::string& name) {
  open_how how{};
  how.flags = kRead;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  for (int tries = 0; tries < 8; ++tries) {
    const auto file = ::syscall(SYS_openat2, folder.number(), name.c_str(), &how, sizeof(how));
    if (file >= 0) return OpenedFile(static_cast<int>(file));
    if (errno != EAGAIN && errno != EINTR) break;  // something was renamed meanwhile
  }
  if (errno == ENOSYS || errno == EPERM || errno == EINVAL || errno == E2BIG) return std::nullopt;
  return OpenedFile();
}

bool is_link(int folder, const char* name) {
  struct stat status {};
  return ::fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode);
}

OpenedFile beneath_by_part(OpenedFile folder, const std::string& name) {
  const auto parts = pieces_of(name, '/');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string part(parts[i]);
    const bool last = i + 1 == parts.size();
    if (!last && (part.empty() || part == ".")) continue;
    if (part == ".." || part.empty()) {
      errno = part.empty() ? EISDIR : EXDEV;
      return OpenedFile();
    }
    OpenedFile next(::openat(folder.number(), part.c_str(), kRead | O_NOFOLLOW | (last ? 0 : O_DIRECTORY)));
    if (!next) {
      // A link where a folder is wanted is "not a folder", too.
      const int error = errno;
      errno = is_link(folder.number(), part.c_str()) ? ELOOP : error;
      return OpenedFile();
    }
    folder = std::move(next);
  }
  return folder;
}

std::string written_by_others(const struct stat& status) {
  if (status.st_uid != ::geteuid() && status.st_uid != 0)
    return fmt::format("belongs to user {}", status.st_uid);
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return fmt::format("may be written by others (mode 0{:o})", status.st_mode & 07777);
  return {};
}

}  // namespace

OpenedFile::~OpenedFile() {
  if (number_ >= 0) ::close(number_);
}
OpenedFile::OpenedFile(OpenedFile&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
OpenedFile& OpenedFile::operator=(OpenedFile&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

OpenedFile open_to_read(const std::string& path) { return OpenedFile(::open(path.c_str(), kRead)); }

OpenedFile open_beneath(const std::string& folder, const std::string& name, Beneath how) {
  OpenedFile at(::open(folder.empty() ? "." : folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!at) return at;
  if (how == Beneath::at_once)
    if (auto file = beneath_at_once(at, name)) return std::move(*file);
  return beneath_by_part(std::move(at), name);
}

std::string written_by_others(const OpenedFile& file) {
  struct stat status {};
  return ::fstat(file.number(), &status) == 0 ? written_by_others(status) : std::string();
}

std::string written_by_others(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? written_by_others(status) : std::string();
}

void make_private_folder(const std::string& path) {
  std::error_code error;
  auto folder = std::filesystem::path(path);
  if (!folder.has_filename()) folder = folder.parent_path();  // "a/b/"
  if (folder.has_parent_path()) std::filesystem::create_directories(folder.parent_path(), error);
  (void)!::mkdir(folder.c_str(), 0700);
}

}  // namespace lamina
