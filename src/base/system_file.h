#pragma once
/// Small files of /proc and /sys.
#include <optional>
#include <string>
#include <vector>

namespace lamina {

/// Of a file; what is no file (to open a pipe would wait), or is longer than any that Linux has, is not
/// known.
std::optional<std::string> system_text(const std::string& path);
std::vector<std::string> system_lines(const std::string& path);
/// The first.
std::optional<std::string> system_line(const std::string& path);

}  // namespace lamina
