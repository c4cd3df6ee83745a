#pragma once
/// Layers to operators.
#include <map>
#include <string>
#include <string_view>

#include "formats/ir/layer_context.h"
#include "formats/ir/type_table.h"

namespace lamina::ir {

using Converter = void (*)(LayerContext&);

/// A type of layer as OpenVINO calls it, and the first operation set that has it.
struct LayerType {
  std::string name;
  int opset = 1;
  bool adopted = false;  ///< old files call it an extension or experimental
};
constexpr int kNewestOpset = 16;
/// All layer types that are read, by the name in lower case: files do not agree on case.
const std::map<std::string, LayerType, std::less<>>& layer_types();

/// Converts a layer: by its special converter, else by the operator of the same name. Throws NotSupported for
/// types that are not in layer_types(), and in operation sets that do not have them.
void convert(LayerContext& c);

using ConverterTable = TypeTable<Converter>;

/// Converters of layers that are not simply the operator of the same name.
const ConverterTable& converters();
/// The converters that do not depend on operation sets: files of IR 2 to 7 have these layers, too.
const ConverterTable& ageless_converters();

// One function per file of converters.
void register_windows(ConverterTable& t);    ///< convolutions, poolings, resizing
void register_special(ConverterTable& t);    ///< other layers whose revisions differ
void register_embedding(ConverterTable& t);  ///< bags of embeddings; ageless
void register_detectron(ConverterTable& t);  ///< two of ExperimentalDetectron; ageless
void register_control(ConverterTable& t);    ///< bodies and variables

/// A DetectionOutput's num_classes is how many confidences there are for each prior.
void require_classes(LayerContext& c, std::int64_t classes, bool normalized);

/// Converts the layer where a library of custom layers has an operation of its version (the domain) and type.
bool convert_custom(LayerContext& c);

}  // namespace lamina::ir
