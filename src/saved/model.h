#pragma once
/// A model as it was read, in the file of a compiled one.
#include "formats/loaded.h"
#include "saved/tensors.h"

namespace lamina {

/// Shapes of a model's inputs, in their order.
using InputShapes = std::vector<Dims>;

/// `with_weights`: false leaves out the data of large constants. `planned`: shapes of inputs that the file
/// has plans for.
void write_model(CompiledFileWriter& file, const Loaded& loaded, bool with_weights,
                 const std::vector<InputShapes>& planned);

/// `given`: libraries of custom layers, of which it takes those that the model was compiled with: throws
/// Error(unsupported) where one is missing or another. Large constants lie in sections that nobody has
/// checked: CompiledFile::check(SectionKind::constant) before they are looked at. Throws Error(bad_file).
Loaded read_model(const CompiledFile& file, const ExtensionSet& given);
/// What the model is called, its inputs ("resnet50", "data f32 [1, 3, 224, 224]"), and shapes of all of them
/// that there are plans for. Of any version of the format that this one can open; empty where it is not
/// there.
struct AboutModel {
  std::string name, inputs;
  std::vector<InputShapes> planned = {};
};
AboutModel about_model(const CompiledFile& file);
/// The file has the model's weights.
bool has_weights(const CompiledFile& file);

}  // namespace lamina
