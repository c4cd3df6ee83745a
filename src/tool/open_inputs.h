#pragma once
/// What is asked for when nothing says how large the inputs of a model are.
#include <string>
#include <vector>

#include "lamina/model.h"

namespace lamina::tool {

/// An input of which a size is not known.
struct OpenInput {
  const Port* port = nullptr;
  Dims shape;  ///< what is known, -1: nothing says it
  bool ranked = true;
};

/// A shape for each: those of a compiled model's plans, else usual sizes that the layers of `model` take as
/// far as shapes tell; null: nobody can be asked.
std::vector<Dims> proposed_shapes(const std::vector<OpenInput>& open, const Model* model);

/// Throws UsageError that names the inputs, with options that can be pasted: "--shape x=1,3,224,224".
/// `files`: the verb takes files of inputs, too.
[[noreturn]] void ask_for_sizes(const std::vector<OpenInput>& open, const Model* model, bool files);

}  // namespace lamina::tool
