#include "base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>

#include "base/error.h"

namespace lamina {
namespace {

/// Follows links, so that a link stays one; the file at its end need not exist.
std::string follow_links(const std::string& path) {
  namespace fs = std::filesystem;
  fs::path at = path;
  std::error_code error;
  for (int i = 0; i < 40 && fs::is_symlink(at, error); ++i) {
    const auto to = fs::read_symlink(at, error);
    if (error) break;
    at = to.is_absolute() ? to : at.parent_path() / to;
  }
  return at.string();
}

std::string beside(const std::string& target) {
  static std::atomic<unsigned> counter{0};
  return fmt::format("{}.{}.{}.tmp", target, ::getpid(), counter++);
}

/// What linkat() takes for a file without a name.
std::string as_link(int descriptor) { return fmt::format("/proc/self/fd/{}", descriptor); }

}  // namespace

void AtomicFile::fail_errno(const char* what) const {
  fail(ErrorCode::bad_file, "{}: {}: {}", path_, what, std::strerror(errno));
}

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  struct stat old {};
  const bool exists = ::stat(path_.c_str(), &old) == 0;
  if (exists && S_ISDIR(old.st_mode))
    fail(ErrorCode::bad_file, "{}: is a folder, wanted a file to write", path_);
  if (exists && !S_ISREG(old.st_mode)) {
    // By the name it was given: links of /dev/stdout lead to pipes that have no other.
    file_ = std::fopen(path_.c_str(), "wb");
    if (!file_) fail_errno("cannot be written");
    return;
  }
  target_ = follow_links(path_);
  const auto slash = target_.rfind('/');
  open_beside(slash == std::string::npos ? "." : target_.substr(0, slash + 1));
  if (exists && ::fchmod(::fileno(file_), old.st_mode & 07777) != 0) errno = 0;  // the umask's mode will do
}

void AtomicFile::open_beside(const std::string& folder) {
  int descriptor = ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  nameless_ = descriptor >= 0 && ::access(as_link(descriptor).c_str(), F_OK) == 0;
  if (descriptor >= 0 && !nameless_) ::close(descriptor);
  if (!nameless_) do {
      temporary_ = beside(target_);
      descriptor = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (descriptor < 0 && errno == EEXIST);
  if (descriptor < 0) {
    temporary_.clear();
    fail_errno("cannot be written");
  }
  file_ = ::fdopen(descriptor, "wb");
  if (file_) return;
  ::close(descriptor);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  fail_errno("cannot be written");
}

/// Its own name where that is free, else one beside it.
void AtomicFile::name_it() {
  const auto link = as_link(::fileno(file_));
  if (::linkat(AT_FDCWD, link.c_str(), AT_FDCWD, target_.c_str(), AT_SYMLINK_FOLLOW) == 0) return;
  while (errno == EEXIST) {
    const auto name = beside(target_);
    if (::linkat(AT_FDCWD, link.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) != 0) continue;
    temporary_ = name;
    return;
  }
  fail_errno("cannot be written");
}

AtomicFile::~AtomicFile() {
  if (file_) std::fclose(file_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  LAMINA_CHECK(file_, "\"{}\" is written after its commit", path_);
  if (!bytes.empty() && std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size())
    fail_errno("cannot be written");
  written_ += bytes.size();
}

void AtomicFile::write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }

void AtomicFile::commit() {
  LAMINA_CHECK(file_, "\"{}\" is committed twice", path_);
  if (std::fflush(file_) != 0) fail_errno("cannot be written");
  if (nameless_) name_it();
  const bool closed = std::fclose(file_) == 0;
  file_ = nullptr;
  if (!closed) fail_errno("cannot be written");
  if (temporary_.empty()) return;
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail_errno("cannot be replaced");
  temporary_.clear();
}

void write_file(const std::string& path, std::span<const std::byte> bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

void write_file(const std::string& path, std::string_view text) {
  write_file(path, std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace lamina
