#pragma once
/// Layers to operators.
#include <map>
#include <string>
#include <string_view>

#include "formats/ir/layer_context.h"

namespace lamina::ir {

using Converter = void (*)(LayerContext&);

/// A type of layer as OpenVINO calls it, and the first operation set that has it.
struct LayerType {
  std::string name;
  int opset = 1;
  bool adopted = false;  ///< old files call it an extension or experimental
};
constexpr int kNewestOpset = 16;
/// All that are read, by the name in lower case: files do not agree on case.
const std::map<std::string, LayerType, std::less<>>& layer_types();

/// Converts a layer: by its special converter, else by the operator of the same name. Throws NotSupported for
/// types that are not in layer_types(), and in operation sets that do not have them.
void convert(LayerContext& c);

/// Type in lower case -> converter, null for none. One function per file of converters.
Converter window_converter(std::string_view type);     ///< convolutions, poolings, resizing
Converter special_converter(std::string_view type);    ///< other layers whose revisions differ
Converter embedding_converter(std::string_view type);  ///< bags of embeddings
Converter detectron_converter(std::string_view type);  ///< two of ExperimentalDetectron
Converter control_converter(std::string_view type);    ///< bodies and variables

/// A DetectionOutput's num_classes is how many confidences there are for each prior.
void require_classes(LayerContext& c, std::int64_t classes, bool normalized);

/// Converts the layer where a library of custom layers has an operation of its version (the domain) and type.
bool convert_custom(LayerContext& c);

}  // namespace lamina::ir
