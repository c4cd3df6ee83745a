#include "base/atomic_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>

#include "base/error.h"
#include "base/numbers.h"

namespace lamina {
namespace {

struct Target {
  std::string path;     // links followed, so that a link stays one; the file at its end need not exist
  int descriptor = -1;  // of this process, when it is the name of one
};

/// The descriptor for names like /proc/self/fd/1, to which /dev/stdout and /dev/fd/1 lead; -1 for others.
/// What such a link says is no path ("pipe:[4711]"), or that of a file of which a shell writes the rest.
int descriptor_of(const std::filesystem::path& path) {
  std::error_code error;
  const auto folder = std::filesystem::canonical(path.parent_path(), error);
  if (error || folder != fmt::format("/proc/{}/fd", ::getpid())) return -1;
  return parse_integer<int>(path.filename().string()).value_or(-1);
}

Target follow_links(const std::string& path) {
  namespace fs = std::filesystem;
  fs::path at = path;
  std::error_code error;
  for (int i = 0; i < 40 && fs::is_symlink(at, error); ++i) {
    if (const int descriptor = descriptor_of(at); descriptor >= 0) return {at.string(), descriptor};
    const auto to = fs::read_symlink(at, error);
    if (error) break;
    at = to.is_absolute() ? to : at.parent_path() / to;
  }
  return {at.string(), -1};
}

/// How a descriptor's file is called without a name of its own.
std::string descriptor_path(int descriptor) { return fmt::format("/proc/self/fd/{}", descriptor); }

/// Names of files that are to be removed when the process ends in the midst. A signal handler takes them,
/// which keeps them from being freed. Threads that compare them or free them hold the mutex.
constexpr std::size_t kMostNoted = 64;
std::atomic<char*> noted[kMostNoted];
std::mutex noting;

/// No memory, or too many: the file stays behind then, if the process is ended just now.
void note_name(const std::string& name) noexcept {
  char* const copy = ::strdup(name.c_str());
  if (copy == nullptr) return;
  const std::lock_guard lock(noting);
  for (auto& slot : noted) {
    char* empty = nullptr;
    if (slot.compare_exchange_strong(empty, copy)) return;
  }
  std::free(copy);
}

void forget_name(const std::string& name) noexcept {
  const std::lock_guard lock(noting);
  for (auto& slot : noted) {
    char* there = slot.load();
    if (there == nullptr || name != there) continue;
    if (slot.compare_exchange_strong(there, nullptr)) std::free(there);
    return;
  }
}

std::string name_beside(const std::string& target) {
  static std::atomic<unsigned> counter{0};
  return fmt::format("{}.{}.{}.tmp", target, ::getpid(), counter++);
}

}  // namespace

void remove_temporary_files() noexcept {
  for (auto& slot : noted)
    if (const char* const name = slot.exchange(nullptr)) ::unlink(name);
}

void AtomicFile::set_temporary(std::string name) {
  if (!temporary_.empty()) forget_name(temporary_);
  temporary_ = std::move(name);
  if (!temporary_.empty()) note_name(temporary_);
}

void AtomicFile::fail_errno(const char* what) const {
  fail(ErrorCode::bad_file, "{}: {}: {}", path_, what, std::strerror(errno));
}

AtomicFile::AtomicFile(std::string path, Path whose) : path_(std::move(path)) {
  auto target = whose == Path::ours ? Target{path_} : follow_links(path_);
  target_ = std::move(target.path);
  struct stat old {};
  bool exists = (whose == Path::ours ? ::lstat(path_.c_str(), &old) : ::stat(path_.c_str(), &old)) == 0;
  if (exists && S_ISDIR(old.st_mode))
    fail(ErrorCode::bad_file, "{}: is a folder, wanted a file to write", path_);
  if (whose == Path::ours && !S_ISREG(old.st_mode)) exists = false;  // it is replaced
  if (target.descriptor >= 0 || (exists && !S_ISREG(old.st_mode))) {
    open_directly(target.descriptor);
    return;
  }
  const int mode = whose == Path::ours ? 0600 : 0666;
  int descriptor = open_nameless(mode);
  nameless_ = descriptor >= 0;
  if (!nameless_) descriptor = open_beside(mode);
  if (descriptor < 0) fail_errno("cannot be written");
  if (exists && whose == Path::of_user && ::fchmod(descriptor, old.st_mode & 07777) != 0)
    errno = 0;  // the umask's mode is good enough
  file_ = ::fdopen(descriptor, "wb");
  if (file_) return;
  ::close(descriptor);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  set_temporary("");
  fail_errno("cannot be written");
}

void AtomicFile::open_directly(int descriptor) {
  if (descriptor < 0) {
    file_ = std::fopen(path_.c_str(), "wbe");
  } else {
    std::fflush(nullptr);  // what was printed there before comes first
    const int own = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    if (own >= 0) file_ = ::fdopen(own, "wb");
    if (own >= 0 && !file_) ::close(own);
  }
  if (!file_) fail_errno("cannot be written");
}

int AtomicFile::open_nameless(int mode) const {
  const auto folder = std::filesystem::path(target_).parent_path().string();
  const int descriptor =
      ::open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
  if (descriptor < 0) return -1;
  if (::access(descriptor_path(descriptor).c_str(), F_OK) == 0) return descriptor;
  ::close(descriptor);  // without /proc it gets no name
  return -1;
}

int AtomicFile::open_beside(int mode) {
  int descriptor = -1;
  do {
    const auto name = name_beside(target_);
    descriptor = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (descriptor >= 0) set_temporary(name);
  } while (descriptor < 0 && errno == EEXIST);
  return descriptor;
}

AtomicFile::~AtomicFile() {
  if (file_) std::fclose(file_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  set_temporary("");
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  LAMINA_CHECK(file_, "\"{}\" is written after its commit", path_);
  if (!bytes.empty() && std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size())
    fail_errno("cannot be written");
  written_ += bytes.size();
}

void AtomicFile::write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }

void AtomicFile::reserve(std::uint64_t bytes) {
  rlimit limit{};
  // Beyond the limit a signal ends the process.
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && bytes > limit.rlim_cur)
    fail(ErrorCode::bad_file, "{}: cannot be written: {} bytes, the process may write {}", path_, bytes,
         limit.rlim_cur);
  if (::fallocate(::fileno(file_), 0, 0, static_cast<off_t>(bytes)) != 0 && errno == ENOSPC)
    fail_errno("cannot be written");
}

void AtomicFile::commit_synced() {
  LAMINA_CHECK(file_, "\"{}\" is committed twice", path_);
  if (std::fflush(file_) != 0) fail_errno("cannot be written");
  if (::fsync(::fileno(file_)) != 0 && errno != EINVAL) fail_errno("cannot be written");  // EINVAL: a pipe
  commit();
}

bool AtomicFile::name_it(const std::string& name) const {
  const auto from = descriptor_path(::fileno(file_));
  if (::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) return true;
  if (errno != EEXIST) fail_errno("cannot be written");
  return false;
}

void AtomicFile::commit() {
  LAMINA_CHECK(file_, "\"{}\" is committed twice", path_);
  if (std::fflush(file_) != 0) fail_errno("cannot be written");
  // A name that is taken is replaced by renaming only.
  if (nameless_ && !name_it(target_)) do
      set_temporary(name_beside(target_));
    while (!name_it(temporary_));
  const bool closed = std::fclose(file_) == 0;
  file_ = nullptr;
  if (!closed) fail_errno("cannot be written");
  if (temporary_.empty()) return;
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail_errno("cannot be replaced");
  set_temporary("");
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
