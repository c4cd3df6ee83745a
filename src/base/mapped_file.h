#pragma once
/// Files mapped into memory for reading, and memory that stands for a file.
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/command_api.h"
#include "base/opened_file.h"
#include "lamina/tensor.h"

namespace lamina {

/// What a file system knows a file's content by: it changes whenever that does, whatever the file's date is
/// set to.
struct FileIdentity {
  std::uint64_t device = 0, inode = 0, size = 0;
  std::int64_t modified = 0, changed = 0;  ///< nanoseconds since 1970; `changed` nobody can set
  bool operator==(const FileIdentity&) const = default;
};
/// The identity of the file that has this name now; nothing when it cannot be read.
std::optional<FileIdentity> identity_of(const std::string& path);

/// A whole file as read-only memory. Constants of models share it.
class MappedFile {
 public:
  /// Throws Error(bad_file): "path: no such file", "path: is a folder, wanted a file", ...
  LAMINA_COMMAND_API static std::shared_ptr<const MappedFile> open(const std::string& path);
  /// A file below a folder, by a name that others have given: no link is followed (base/opened_file.h). Null
  /// where there is a link.
  static std::shared_ptr<const MappedFile> open_beneath(const std::string& folder, const std::string& name);
  /// A file of this user's own: no link, and no other user can have written it. Throws Error(bad_file), too,
  /// where that is not so.
  static std::shared_ptr<const MappedFile> open_own(const std::string& path);
  /// Memory that `owner` keeps as it is, under a name for errors.
  static std::shared_ptr<const MappedFile> in_memory(std::string name, std::span<const std::byte> bytes,
                                                     std::shared_ptr<const void> owner);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  /// When it was opened; nothing for memory that is no file.
  const std::optional<FileIdentity>& identity() const { return identity_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  MappedFile() = default;
  static std::shared_ptr<const MappedFile> map(const OpenedFile& file, const std::string& path);
  std::string path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  bool mapped_ = false;  // to be given back
  std::optional<FileIdentity> identity_;
  std::shared_ptr<const void> owner_;  // of memory that is no file
};

/// Gives back the memory of whole pages of [data, data + bytes) when it lies in a mapped file; they are read
/// again from the file when they are touched. Does nothing for other memory. Thread-safe.
void drop_mapped_pages(const void* data, std::size_t bytes);

/// Addresses that nothing else has and nobody may read, to stand for data that is not there.
std::shared_ptr<const void> unreadable_memory(std::size_t bytes);

/// The tensor when it is aligned, else an aligned copy for which a mapped file's pages are dropped as they
/// are read: both never stand in memory at once.
Tensor aligned_once(const Tensor& tensor);

}  // namespace lamina
