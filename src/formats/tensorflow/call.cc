#include "formats/tensorflow/call.h"

#include "base/immortal.h"
#include "formats/known.h"
#include "formats/tensorflow/importer.h"
#include "graph/infer.h"
#include "ops/eval.h"

namespace lamina::tensorflow {

Graph& Call::graph() const { return importer_.graph(); }

ValueId Call::in(std::size_t i) const {
  if (i >= inputs_.size()) fail("input {} is missing", i);
  return inputs_[i];
}

ElementType Call::known_element(ValueId v) const {
  if (element(v) == ElementType::undefined)
    unsupported("the element type of \"{}\" is not known", graph().value(v).name);
  return element(v);
}

std::optional<std::size_t> Call::rank(ValueId v) const {
  return shape(v).ranked() ? std::optional(shape(v).rank()) : std::nullopt;
}

std::size_t Call::known_rank(ValueId v) const {
  const auto r = rank(v);
  if (!r) unsupported("the rank of \"{}\" is not known", graph().value(v).name);
  return *r;
}

std::optional<Tensor> Call::known(ValueId v) const {
  return known_value(graph(), v, importer_.folding_budget);
}

std::optional<Ints> Call::known_ints(ValueId v) const {
  const auto t = known(v);
  if (!t || is_float(t->element_type())) return std::nullopt;
  return to_ints(*t);
}

std::optional<double> Call::known_number(ValueId v) const {
  const auto t = known(v);
  if (!t || t->size() != 1) return std::nullopt;
  return to_doubles(*t)[0];
}

Ints Call::wanted_ints(ValueId v, std::string_view what) const {
  auto values = known_ints(v);
  if (!values) unsupported("{} that are computed from data", what);
  return std::move(*values);
}

std::int64_t Call::wanted_int(ValueId v, std::string_view what) const {
  const auto values = known_ints(v);
  if (!values) unsupported("{} that is computed from data", what);
  if (values->size() != 1) fail("{} has {} elements, wanted 1", what, values->size());
  return values->front();
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
  return graph()
      .node(graph().add_node(std::move(op), std::move(inputs), {}, outputs, std::move(bodies)))
      .outputs;
}

Converter ConverterTable::find(std::string_view type) const {
  const auto it = rows_.find(type);
  return it == rows_.end() ? nullptr : it->second;
}

std::vector<std::string> ConverterTable::names() const {
  std::vector<std::string> out;
  for (const auto& [name, converter] : rows_) out.push_back(name);
  return out;
}

const ConverterTable& converters() {
  static const Lasting all([] {
    ConverterTable t;
    for (auto* add :
         {register_arrays, register_convolution, register_detection, register_elementwise,
          register_generation, register_lists, register_matmul, register_normalization, register_pooling,
          register_quantization, register_recurrent, register_reduction, register_resize, register_shape,
          register_slicing, register_sorting, register_space, register_transposed})
      add(t);
    return t;
  });
  return *all;
}

}  // namespace lamina::tensorflow
