#include "base/system_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>

namespace lamina {

std::optional<std::string> system_text(const std::string& path) {
  constexpr std::size_t kMost = 1 << 16;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return std::nullopt;
  struct stat status {};
  std::string text(kMost + 1, 0);
  std::size_t size = 0;
  ssize_t some = fstat(file, &status) == 0 && S_ISREG(status.st_mode) ? 1 : -1;
  while (some > 0 && size < text.size()) {
    some = read(file, text.data() + size, text.size() - size);
    if (some < 0 && errno == EINTR)
      some = 1;
    else if (some > 0)
      size += static_cast<std::size_t>(some);
  }
  close(file);
  if (some < 0 || size > kMost) return std::nullopt;
  text.resize(size);
  return text;
}

std::vector<std::string> system_lines(const std::string& path) {
  std::istringstream in(system_text(path).value_or(""));
  std::vector<std::string> out;
  for (std::string line; std::getline(in, line);) out.push_back(std::move(line));
  return out;
}

std::optional<std::string> system_line(const std::string& path) {
  auto text = system_text(path);
  if (!text || text->empty()) return std::nullopt;
  return text->substr(0, text->find('\n'));
}

}  // namespace lamina
