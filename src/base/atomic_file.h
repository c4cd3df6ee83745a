#pragma once
/// Files that are written completely or not at all.
#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

namespace lamina {

/// Writes beside the target without a name, or under another one where the file system wants one; commit()
/// puts it in its place. Without a commit (an exception, the end of the process) the target stays as it was
/// and the half-written file is gone; only one with a name stays when the process is killed. What is not an
/// ordinary file (/dev/stdout, a pipe) is written directly. All errors are Error(bad_file) and name the path.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  std::uint64_t written() const { return written_; }
  void commit();

 private:
  [[noreturn]] void fail_errno(const char* what) const;
  void open_beside(const std::string& folder);
  void name_it();

  std::string path_;       // as the caller said it
  std::string target_;     // links followed
  std::string temporary_;  // empty when there is none
  bool nameless_ = false;
  std::FILE* file_ = nullptr;
  std::uint64_t written_ = 0;
};

void write_file(const std::string& path, std::span<const std::byte> bytes);
void write_file(const std::string& path, std::string_view text);

}  // namespace lamina
