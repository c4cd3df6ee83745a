/// Inputs of the model: which are asked for, have a value, or are to have another shape.
#include <ranges>

#include "base/nearest.h"
#include "formats/frozen.h"
#include "formats/onnx/importer.h"
#include "formats/onnx/sequence.h"

namespace lamina::onnx {

void Importer::import_inputs(Scope& scope) {
  auto& defaults = loaded_.optional_inputs;
  for (const auto& v : model_.graph->inputs) {
    if (is_frozen(scope, v)) continue;
    if (scope.tensors.contains(v.name) || scope.sparse_tensors.contains(v.name)) {
      const auto it = settable_.find(v.name);
      if (it == settable_.end()) {
        defaults.emplace_back(v.name);
        continue;
      }
      loaded_.defaults.emplace(*it, default_of(scope, v));
      settable_.erase(it);
    }
    if (v.name.empty()) fail(ErrorCode::bad_file, "an input has no name");
    const auto element = element_type_of_onnx(v.data_type);
    const auto id = scope.graph.add_input(std::string(v.name), {element, shape_of(v)});
    if (!scope.values.emplace(v.name, id).second)
      fail(ErrorCode::bad_file, "two inputs have the name \"{}\"", v.name);
    if (v.kind != "tensor" && !v.kind.empty())
      list_unsupported("input of type " + std::string(v.kind), std::string(v.name));
    else if (element == ElementType::undefined)
      list_unsupported("input of type " + name_of_onnx_type(v.data_type), std::string(v.name));
  }
  // Models of IR version 3 must list all initialisers as inputs; in later ones callers may set those.
  if (model_.ir_version > 3 && !defaults.empty())
    warn(
        fmt::format("{} of the inputs have a value in the model and are constants unless they are named as "
                    "settable: {}{}",
                    defaults.size(), fmt::join(defaults | std::views::take(3), ", "),
                    defaults.size() > 3 ? ", ..." : ""));
  if (!settable_.empty())
    fail(ErrorCode::bad_option, "settable \"{}\": there is no such input with a value in the model{}",
         *settable_.begin(), did_you_mean(*settable_.begin(), defaults));
}

/// The input's shape as the caller gives it.
Shape Importer::shape_of(const ValueInfoProto& input) const {
  const auto asked = settings_.shapes.find(input.name);
  return asked == settings_.shapes.end() ? input.shape : asked->second;
}

/// Makes a constant of an input that is to be one, whatever value it has in the file.
bool Importer::is_frozen(Scope& scope, const ValueInfoProto& input) {
  const auto asked = settings_.frozen.find(input.name);
  if (asked == settings_.frozen.end()) return false;
  const auto value =
      frozen_value(input.name, asked->second, {element_type_of_onnx(input.data_type), shape_of(input)});
  return scope.values.emplace(input.name, scope.graph.add_constant(value, std::string(input.name))).second;
}

/// The initialiser's value, which the input must be able to take.
Tensor Importer::default_of(const Scope& scope, const ValueInfoProto& input) {
  const auto dense = scope.tensors.find(input.name);
  const auto value =
      dense != scope.tensors.end() ? read(*dense->second) : read(*scope.sparse_tensors.at(input.name));
  const auto element = element_type_of_onnx(input.data_type);
  if (value.element_type() != element || !input.shape.fits(Shape::of(value.shape())))
    fail(ErrorCode::bad_file, "input \"{}\" is {}{}, its value {}{}", input.name, name_of(element),
         to_string(input.shape), name_of(value.element_type()), to_string(value.shape()));
  return value.to_aligned();
}

}  // namespace lamina::onnx
