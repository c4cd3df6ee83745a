#pragma once
/// The libraries of custom layers that a compiled model was made with.
#include "base/byte_stream.h"
#include "base/hash.h"
#include "extension/extensions.h"
#include "graph/graph.h"

namespace lamina {

/// Adds what tells the libraries from others, in their order: name, version, content.
void add_libraries(Hasher& to, const ExtensionSet& libraries);

/// `graph`: errors will name its operators.
void write_libraries(ByteWriter& to, const ExtensionSet& libraries, const Graph& graph);

/// The given libraries that the file was written with. Throws Error(unsupported), beginning with `path`, if
/// one is missing or differs: it names the library, its version and operators.
std::shared_ptr<const ExtensionSet> read_libraries(ByteReader& from, const ExtensionSet& given,
                                                   const std::string& path);

}  // namespace lamina
