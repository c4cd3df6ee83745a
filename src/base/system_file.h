#pragma once
/// Small files of /proc and /sys.
#include <optional>
#include <string>
#include <vector>

namespace lamina {

/// The text of a file of the system; nothing if it is not a regular file (opening a pipe would wait), or
/// longer than any that Linux has.
std::optional<std::string> system_text(const std::string& path);
std::vector<std::string> system_lines(const std::string& path);
/// The first.
std::optional<std::string> system_line(const std::string& path);

}  // namespace lamina
