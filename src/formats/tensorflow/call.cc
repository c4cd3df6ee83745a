#include "formats/tensorflow/call.h"

#include "base/no_destructor.h"
#include "formats/tensorflow/importer.h"
#include "graph/infer.h"
#include "ops/eval.h"

namespace lamina::tensorflow {

Call::Call(Importer& importer, const NodeDef& node, Values inputs)
    : Building(importer.graph(), importer.folding_budget),
      importer_(importer),
      node_(node),
      inputs_(std::move(inputs)) {}

ValueId Call::in(std::size_t i) const {
  if (i >= inputs_.size()) fail("input {} is missing", i);
  return inputs_[i];
}

std::optional<AttrValue> Call::find(std::string_view name) const {
  for (const auto& [key, message] : node_.attributes)
    if (key == name) {
      const auto value = parse_attribute(message);
      if (value.kind == AttrValue::none) return std::nullopt;
      return value;
    }
  return std::nullopt;
}

std::optional<AttrValue> Call::find(std::string_view name, AttrValue::Kind kind,
                                    std::string_view wanted) const {
  const auto value = find(name);
  if (value && value->kind != kind) fail("attribute \"{}\" is not {}", name, wanted);
  return value;
}

std::int64_t Call::i(std::string_view name, std::int64_t fallback) const {
  const auto value = find(name, AttrValue::integer, "an integer");
  return value ? value->i : fallback;
}

double Call::f(std::string_view name, double fallback) const {
  const auto value = find(name, AttrValue::number, "a number");
  return value ? value->f : fallback;
}

bool Call::flag(std::string_view name, bool fallback) const {
  const auto value = find(name, AttrValue::flag, "true or false");
  return value ? value->i != 0 : fallback;
}

std::string Call::s(std::string_view name, std::string_view fallback) const {
  const auto value = find(name, AttrValue::text, "a text");
  return std::string(value ? value->bytes : fallback);
}

Ints Call::ints(std::string_view name, Ints fallback) const {
  const auto value = find(name, AttrValue::list, "a list");
  return value ? parse_list(value->bytes).integers : std::move(fallback);
}

std::vector<float> Call::floats(std::string_view name) const {
  const auto value = find(name, AttrValue::list, "a list");
  return value ? parse_list(value->bytes).numbers : std::vector<float>{};
}

std::optional<TensorProto> Call::tensor(std::string_view name) const {
  const auto value = find(name, AttrValue::tensor, "a tensor");
  return value ? std::optional(parse_tensor(value->bytes)) : std::nullopt;
}

std::optional<Shape> Call::shape_attribute(std::string_view name) const {
  const auto value = find(name, AttrValue::shape, "a shape");
  return value ? std::optional(parse_shape(value->bytes)) : std::nullopt;
}

ElementType Call::type_attribute(std::string_view name, ElementType fallback) const {
  const auto value = find(name, AttrValue::type, "a type");
  if (!value) return fallback;
  const auto type = element_type_of(value->i);
  if (type == ElementType::undefined) unsupported("elements of type {}", name_of_type(value->i));
  return type;
}

Values Call::add_all(Op op, Values inputs, int outputs, std::vector<Graph> bodies) {
  if (outputs > 8) importer_.spend_outputs(outputs);
  return Building::add_all(std::move(op), std::move(inputs), outputs, std::move(bodies));
}

const ConverterTable& converters() {
  static const ProcessLifetime all([] {
    ConverterTable t;
    for (auto* add : {register_arrays,        register_complex,    register_convolution,  register_detection,
                      register_elementwise,   register_generation, register_lists,        register_matmul,
                      register_normalization, register_pooling,    register_quantization, register_recurrent,
                      register_reduction,     register_resampling, register_resize,       register_segments,
                      register_shape,         register_slicing,    register_sorting,      register_space,
                      register_transposed})
      add(t);
    return t;
  });
  return *all;
}

}  // namespace lamina::tensorflow
