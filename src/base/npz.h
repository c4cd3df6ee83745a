#pragma once
/// numpy's .npz files: several named arrays in a zip archive.
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/npy.h"

namespace lamina {

/// Arrays by name (without ".npy"), in the order of the file.
using NpzFile = std::vector<std::pair<std::string, Tensor>>;

/// Entries may be stored or deflated; checksums are checked. `where` starts the texts of errors.
NpzFile parse_npz(std::span<const std::byte> bytes, std::string_view where);
NpzFile read_npz(const std::string& path);

/// Writes completely or not at all, each array below 4 GiB and the file too. See write_npy for types.
void write_npz(const std::string& path, const NpzFile& arrays, bool deflate = false);

}  // namespace lamina
