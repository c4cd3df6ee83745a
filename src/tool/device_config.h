#pragma once
/// Settings of devices in a file: {"CPU": {"NUM_STREAMS": "3"}}.
#include <string>
#include <utility>
#include <vector>

#include "lamina/options.h"

namespace lamina::tool {

/// The CPU's keys and values, in the order of the file, as options take them. Names of other devices are
/// added to `others`. Throws Error(bad_file).
std::vector<std::pair<std::string, std::string>> read_device_config(const std::string& path,
                                                                    std::vector<std::string>& others);

/// Writes the settings that were given, each once, in the form that read_device_config() reads.
void write_device_config(const std::string& path, const Options& options);

}  // namespace lamina::tool
