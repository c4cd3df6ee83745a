#pragma once
/// Settings of devices in a file: {"CPU": {"NUM_STREAMS": "3"}}.
#include <string>
#include <utility>
#include <vector>

#include "lamina/options.h"

namespace lamina::tool {

/// Keys and values of the CPU, in the order of the file, which options take; what is for other devices goes
/// to `others`. Throws Error(bad_file).
std::vector<std::pair<std::string, std::string>> read_device_config(const std::string& path,
                                                                    std::vector<std::string>& others);

/// Writes what was asked for, each setting once; read_device_config() reads it.
void write_device_config(const std::string& path, const Options& options);

}  // namespace lamina::tool
