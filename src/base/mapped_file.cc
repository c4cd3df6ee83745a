#include "base/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <system_error>

#include "base/error.h"
#include "base/no_destructor.h"
#include "base/parallel.h"
#include "base/quiescence.h"
#include "base/work_partition.h"

namespace lamina {
namespace {

[[noreturn]] void fail_with(const std::string& path, int error) {
  if (error == ENOMEM) fail(ErrorCode::out_of_memory, "{}: no memory to read it", path);
  if (error == ENOENT || error == ENOTDIR) fail(ErrorCode::bad_file, "{}: no such file", path);
  if (error == EACCES || error == EPERM) fail(ErrorCode::bad_file, "{}: no permission to read", path);
  fail(ErrorCode::bad_file, "{}: cannot be read: {}", path, std::generic_category().message(error));
}

void check_name(const std::string& path) {
  if (path.find('\0') != std::string::npos) fail(ErrorCode::bad_file, "a file name holds a zero byte");
}

FileIdentity identity_from(const struct stat& s) {
  const auto nanoseconds = [](const timespec& t) { return t.tv_sec * std::int64_t{1000000000} + t.tv_nsec; };
  return {static_cast<std::uint64_t>(s.st_dev), static_cast<std::uint64_t>(s.st_ino),
          static_cast<std::uint64_t>(s.st_size), nanoseconds(s.st_mtim), nanoseconds(s.st_ctim)};
}

/// What is mapped now: begin -> end.
struct Mappings {
  std::mutex mutex;
  std::map<std::uintptr_t, std::uintptr_t> ranges;
};
Mappings& mappings() {
  static NoDestructor<Mappings> all;
  return *all;
}

}  // namespace

std::optional<FileIdentity> identity_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return identity_from(status);
}

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  check_name(path);
  return map(open_to_read(path), path);
}

std::shared_ptr<const MappedFile> MappedFile::open_beneath(const std::string& folder,
                                                           const std::string& name) {
  check_name(name);
  const auto file = lamina::open_beneath(folder, name);
  if (!file && errno == ELOOP) return nullptr;
  return map(file, (std::filesystem::path(folder) / name).string());
}

std::shared_ptr<const MappedFile> MappedFile::open_own(const std::string& path) {
  check_name(path);
  const std::filesystem::path at = path;
  const auto file = lamina::open_beneath(at.parent_path().string(), at.filename().string());
  if (!file && errno == ELOOP) fail(ErrorCode::bad_file, "{}: is a symbolic link", path);
  if (file)
    if (const auto why = written_by_others(file); !why.empty())
      fail(ErrorCode::bad_file, "{}: {}", path, why);
  return map(file, path);
}

std::shared_ptr<const MappedFile> MappedFile::map(const OpenedFile& file, const std::string& path) {
  if (!file) fail_with(path, errno);
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) fail_with(path, errno);
  if (S_ISDIR(status.st_mode)) fail(ErrorCode::bad_file, "{}: is a folder, wanted a file", path);
  if (!S_ISREG(status.st_mode)) fail(ErrorCode::bad_file, "{}: is not a regular file", path);

  std::shared_ptr<MappedFile> mapped(new MappedFile);
  mapped->path_ = path;
  mapped->identity_ = identity_from(status);
  mapped->size_ = static_cast<std::size_t>(status.st_size);
  if (mapped->size_ == 0) return mapped;  // mmap refuses empty ranges
  void* data = ::mmap(nullptr, mapped->size_, PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (data == MAP_FAILED) {
    mapped->size_ = 0;
    fail_with(path, errno);
  }
  mapped->data_ = static_cast<const std::byte*>(data);
  mapped->mapped_ = true;
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  const Quiescence::Undisturbed no_fork;  // files are opened before the work on them begins
  std::lock_guard lock(mappings().mutex);
  mappings().ranges[begin] = begin + mapped->size_;
  return mapped;
}

std::shared_ptr<const MappedFile> MappedFile::in_memory(std::string name, std::span<const std::byte> bytes,
                                                        std::shared_ptr<const void> owner) {
  std::shared_ptr<MappedFile> file(new MappedFile);
  file->path_ = std::move(name);
  file->data_ = bytes.data();
  file->size_ = bytes.size();
  file->owner_ = std::move(owner);
  return file;
}

MappedFile::~MappedFile() {
  if (!mapped_) return;
  {
    const Quiescence::Undisturbed no_fork;  // it may go with a model, outside all work
    std::lock_guard lock(mappings().mutex);
    mappings().ranges.erase(reinterpret_cast<std::uintptr_t>(data_));
  }
  ::munmap(const_cast<std::byte*>(data_), size_);
}

void drop_mapped_pages(const void* data, std::size_t bytes) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  const auto begin = round_up(address, page), end = (address + bytes) / page * page;
  if (end <= begin) return;
  std::lock_guard lock(mappings().mutex);  // it must not be unmapped meanwhile
  auto it = mappings().ranges.upper_bound(begin);
  if (it == mappings().ranges.begin()) return;
  --it;
  // The type of madvise() wants a pointer to what may be written; nothing is.
  auto* const first = static_cast<std::byte*>(const_cast<void*>(data)) + (begin - address);
  if (end <= it->second) ::madvise(first, end - begin, MADV_DONTNEED);
}

std::shared_ptr<const void> unreadable_memory(std::size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) fail(ErrorCode::out_of_memory, "no room for {} addresses", bytes);
  return {memory, [bytes](const void* p) { ::munmap(const_cast<void*>(p), bytes); }};
}

Tensor aligned_once(const Tensor& tensor) {
  if (tensor.aligned()) return tensor;
  Tensor copy(tensor.element_type(), tensor.shape());
  constexpr std::size_t kPiece = std::size_t{4} << 20;
  const auto pieces = static_cast<std::int64_t>(ceil_div(tensor.bytes(), kPiece));
  parallel_for(pieces, 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto at = static_cast<std::size_t>(begin) * kPiece;
         at < std::min(static_cast<std::size_t>(end) * kPiece, tensor.bytes()); at += kPiece) {
      const auto bytes = std::min(kPiece, tensor.bytes() - at);
      std::memcpy(copy.raw() + at, tensor.raw() + at, bytes);
      drop_mapped_pages(tensor.raw() + at, bytes);
    }
  });
  return copy;
}

}  // namespace lamina
