#pragma once
/// A model as it was read, in the file of a compiled one.
#include "formats/loaded.h"
#include "saved/tensors.h"

namespace lamina {

/// `with_weights`: false leaves out the data of large constants.
void write_model(CompiledFileWriter& file, const Loaded& loaded, bool with_weights);

/// `given`: libraries of custom layers, of which it takes those that the model was compiled with: throws
/// Error(unsupported) where one is missing or another. Large constants lie in sections that nobody has
/// checked: CompiledFile::check(SectionKind::constant) before they are looked at. Throws Error(bad_file).
Loaded read_model(const CompiledFile& file, const ExtensionSet& given);
/// What the model is called, and its inputs: "resnet50", "data f32 [1, 3, 224, 224]". Of any version of the
/// format that this one can open; empty where it is not there.
struct AboutModel {
  std::string name, inputs;
};
AboutModel about_model(const CompiledFile& file);
/// The file has the model's weights.
bool has_weights(const CompiledFile& file);

}  // namespace lamina
