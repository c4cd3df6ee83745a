#pragma once
/// Files that are written completely or not at all.
#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

#include "base/command_api.h"

namespace lamina {

/// Writes a file that has no name yet; commit() puts it in the target's place. Without a commit (an
/// exception, or the process is killed) the target stays as it was and nothing is left. Where the file system
/// has no files without names it is one beside the target, NAME.PID.N.tmp, which a process that is killed
/// leaves behind. What is not an ordinary file (a pipe) and what is open already (/dev/stdout, /dev/fd/3) is
/// written directly, and links are followed: the path is the user's. A path of ours is taken as it is: what
/// has the name, a link or a pipe, goes, and only this user may read and write the file. All errors are
/// Error(bad_file) and name the path.
class AtomicFile {
 public:
  enum class Path { of_user, ours };
  LAMINA_COMMAND_API explicit AtomicFile(std::string path, Path whose = Path::of_user);
  LAMINA_COMMAND_API ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  std::uint64_t written() const { return written_; }
  /// Takes room for so many bytes where the file system can, so that a full one is found before the work.
  void reserve(std::uint64_t bytes);
  void commit();
  /// Commits, and returns when all bytes are on the disk: after a loss of power the file is the old one or
  /// the new one.
  void commit_synced();

 private:
  [[noreturn]] void fail_errno(const char* what) const;
  void open_directly(int descriptor);
  int open_nameless(int mode) const;
  int open_beside(int mode);
  /// Sets the name of the temporary file; empty: there is none any more.
  void set_temporary(std::string name);
  /// Whether the file without a name has got this one; false: there is one of this name.
  bool name_it(const std::string& name) const;

  std::string path_;       // as the caller said it
  std::string target_;     // links followed
  std::string temporary_;  // name of the file until the commit, when it has one
  bool nameless_ = false;
  std::FILE* file_ = nullptr;
  std::uint64_t written_ = 0;
};

/// Removes the files beside their targets that have names now. For the end of the process: may be called in a
/// signal handler.
void remove_temporary_files() noexcept;

void write_file(const std::string& path, std::span<const std::byte> bytes);
LAMINA_COMMAND_API void write_file(const std::string& path, std::string_view text);

}  // namespace lamina
