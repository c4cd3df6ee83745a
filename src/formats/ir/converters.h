#pragma once
/// Layers to operators.
#include <string_view>

#include "formats/ir/layer_context.h"

namespace lamina::ir {

using Converter = void (*)(LayerContext&);

/// Converts a layer: by its special converter, else by the operator of the same name. Throws NotSupported.
void convert(LayerContext& c);

/// Type in lower case -> converter, null for none. One function per file of converters.
Converter window_converter(std::string_view type);   ///< convolutions, poolings, resizing
Converter special_converter(std::string_view type);  ///< other layers whose revisions differ
Converter control_converter(std::string_view type);  ///< bodies and variables

}  // namespace lamina::ir
