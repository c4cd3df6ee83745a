#include "base/directory.h"

#include <dirent.h>

#include <cerrno>
#include <memory>
#include <string_view>

namespace lamina {

std::vector<std::string> names_in(const std::string& folder, std::error_code& error) {
  struct Close {
    void operator()(DIR* dir) const noexcept { ::closedir(dir); }
  };
  std::vector<std::string> out;
  errno = 0;
  const std::unique_ptr<DIR, Close> dir(::opendir(folder.c_str()));
  while (dir) {
    errno = 0;
    const auto* const entry = ::readdir(dir.get());
    if (!entry) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") out.emplace_back(name);
  }
  error.assign(errno, std::system_category());
  return out;
}

}  // namespace lamina
