#pragma once
/// numpy's .npz files: several named arrays in a zip archive.
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/command_api.h"
#include "base/npy.h"

namespace lamina {

/// Arrays by name (without ".npy"), in the order of the file.
using NpzFile = std::vector<std::pair<std::string, Tensor>>;

/// WantedArray with the array's name.
using WantedOfNpz = std::function<bool(const std::string& name, ElementType type, const Dims& shape)>;
/// Entries may be stored or deflated; checksums are checked. `where` starts the texts of errors. What is not
/// wanted is left out, and not unpacked.
NpzFile parse_npz(std::span<const std::byte> bytes, std::string_view where, const WantedOfNpz& wanted = {});
LAMINA_COMMAND_API NpzFile read_npz(const std::string& path, const WantedOfNpz& wanted = {});

/// Writes completely or not at all, each array below 4 GiB and the file too. See write_npy for types.
LAMINA_COMMAND_API void write_npz(const std::string& path, const NpzFile& arrays, bool deflate = false);

}  // namespace lamina
