#pragma once
/// How files are opened for reading whose names, or whose folders, are not only the user's: what a model says
/// lies beside it, and what a cache holds.
#include <string>

namespace lamina {

/// A descriptor that closes itself.
class OpenedFile {
 public:
  explicit OpenedFile(int number = -1) noexcept : number_(number) {}
  ~OpenedFile();
  OpenedFile(OpenedFile&& other) noexcept;
  OpenedFile& operator=(OpenedFile&& other) noexcept;
  int number() const noexcept { return number_; }  ///< -1: there is none, and errno says why
  explicit operator bool() const noexcept { return number_ >= 0; }

 private:
  int number_;
};

/// A pipe without a writer does not make it wait.
OpenedFile open_to_read(const std::string& path);

/// How open_beneath() goes: openat2 asks the kernel for all of it at once; where there is none (before
/// Linux 5.6, in some sandboxes) each part of the path is opened by itself.
enum class Beneath { at_once, by_part };
/// A file of that name below a folder, which nothing leaves: no link is followed on the way or at the end,
/// and there is no "..". errno is ELOOP where there is a link. The folder's own path may go through links.
OpenedFile open_beneath(const std::string& folder, const std::string& name, Beneath how = Beneath::at_once);

/// Why others than this user and root could have written into what is open (a file or a folder): "belongs to
/// user 1001", "may be written by others (mode 0775)"; empty when nobody could.
std::string written_by_others(const OpenedFile& file);
/// Why the file or folder at a path (through links) may be written by others; empty if it may not, or does
/// not exist.
std::string written_by_others(const std::string& path);

/// Makes a folder that only this user may enter, and those above it where they are missing. What is there
/// stays as it is.
void make_private_folder(const std::string& path);

}  // namespace lamina
