#pragma once
/// GraphDef in protobuf's text format.
#include <memory>

#include "base/mapped_file.h"

namespace lamina::tensorflow {

/// Whether a text begins with a field of GraphDef.
bool looks_like_text_graph(std::string_view text);

/// Converts the text format to the wire format, under the file's name. Fields that GraphDef does not have are
/// left out. Throws Error(bad_file) with path and line.
std::shared_ptr<const MappedFile> text_as_wire(const std::shared_ptr<const MappedFile>& file);

}  // namespace lamina::tensorflow
