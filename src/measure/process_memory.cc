#include "measure/process_memory.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace lamina {

ProcessMemory process_memory(const std::string& model) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const auto folder = fs::weakly_canonical(model, ignored).parent_path().string() + "/";
  ProcessMemory m;
  double* kind = &m.rest;
  std::ifstream in("/proc/self/smaps");
  for (std::string line; std::getline(in, line);) {
    // "7f58-7f59 r-xp 0 00:00 0   path", then lines "Rss:  12 kB".
    std::istringstream words(line);
    std::string range, access, offset, device, inode, path;
    words >> range >> access;
    if (range.ends_with(":")) {
      if (range == "Rss:") *kind += 1024 * std::strtod(access.c_str(), nullptr);
      continue;
    }
    words >> offset >> device >> inode;
    std::getline(words >> std::ws, path);
    const bool file = path.starts_with("/") && !path.starts_with("/memfd:") && !path.starts_with("/dev/zero");
    const bool runs = access.find('x') != std::string::npos;
    if (file && path.starts_with(folder) && path.find(".so") == std::string::npos && !runs)
      kind = &m.model;
    else if (file || path == "[vdso]")
      kind = &m.libraries;
    else
      kind = runs ? &m.code : &m.rest;
  }
  return m;
}

}  // namespace lamina
