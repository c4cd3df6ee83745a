#pragma once
/// Shared libraries that are loaded at run time.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lamina {

class MappedFile;

/// The file that holds the code of a function: a library's, or the program's.
std::shared_ptr<const MappedFile> file_with(void (*function)());

/// A library in the process. It may go when the last owner does. Thread-safe.
class SharedLibrary {
 public:
  /// A name without a slash is looked for in the folders that the environment variable LAMINA_EXTENSION_PATH
  /// lists (with colons between), then in the current folder. Its symbols are not seen by others
  /// (RTLD_LOCAL). A library that others have loaded (another engine in the process, whose functions its
  /// variables hold) is loaded once more, for this one. Throws Error(bad_file) for what is no shared library
  /// of this processor, or cannot be loaded.
  static std::shared_ptr<SharedLibrary> open(const std::string& path);
  ~SharedLibrary();
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;

  const std::string& path() const { return path_; }  ///< of the file that was opened
  std::string name() const;                          ///< without folders
  /// The library's file as it was when it was opened.
  const std::shared_ptr<const MappedFile>& file() const { return file_; }
  /// The address of what it exports itself under that name, or null.
  void* symbol(const char* name) const;
  /// Names of the functions that it exports, at most some thousands.
  std::vector<std::string> functions() const;
  /// Keeps the library in the process until the process ends.
  void never_unload();

 private:
  SharedLibrary() = default;
  void load();
  void load_copy();
  std::string path_;
  std::shared_ptr<const MappedFile> file_;
  void* handle_ = nullptr;
  int copy_ = -1;  // a file of its own; open while the library is, so that nothing else has its name
};

}  // namespace lamina
