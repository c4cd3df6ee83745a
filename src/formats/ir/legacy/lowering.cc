#include "formats/ir/legacy/lowering.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/no_destructor.h"
#include "formats/ir/converters.h"
#include "formats/ir/legacy/legacy.h"
#include "formats/ir/text.h"
#include "ops/elementwise.h"
#include "ops/movement.h"
#include "ops/operators.h"
#include "ops/shaping.h"

namespace lamina::ir::legacy {
namespace {

constexpr std::size_t kSmall = 4096;  // elements of constants that are read here

/// The constant's values, also where f16 is widened.
std::optional<Tensor> small_constant(const Graph& graph, ValueId value) {
  const NodeId maker = graph.producer(value);
  if (maker.valid() && graph.node(maker).op.is<Convert>()) {
    const Tensor* stored = graph.constant(graph.node(maker).inputs[0]);
    if (!stored || element_count(stored->shape()) > kSmall) return std::nullopt;
    return convert(*stored, graph.type(value).element);
  }
  const Tensor* tensor = graph.constant(value);
  if (!tensor || element_count(tensor->shape()) > kSmall) return std::nullopt;
  return *tensor;
}

bool without_ones_equal(const Dims& a, const Dims& b) {
  Dims left = a, right = b;
  std::erase(left, 1);
  std::erase(right, 1);
  return left == right;
}

/// Layers that are called as an operator is, with its attributes: newer ones, and those of extensions. Not
/// those whose revisions differ, nor Unique, whose outputs have no ends of their own in old files.
void lower_alike(Lowering& c) {
  const std::string& type = c.layer().type;
  if (const ir::Converter converter = ageless_converters().find(type)) return converter(c);
  const auto known = layer_types().find(ir::lower(type));
  if (known == layer_types().end() || known->first == "unique" || converters().find(type))
    throw NotSupported{};
  const AnyOp* prototype = operators().find(known->second.name);
  if (!prototype || has(prototype->info().traits, Trait::control_flow)) throw NotSupported{};
  Op op = c.op(known->second.name);
  c.finish(std::move(op), c.all_inputs());
}

}  // namespace

const Reading& Lowering::reading_of() const { return builder_.reading(); }

void Lowering::want(const char* name) {
  if (!has(name)) fail("{} is missing", name);
}

std::int64_t Lowering::integer(const char* name) {
  want(name);
  return integer(name, 0);
}

std::int64_t Lowering::integer(const char* name, std::int64_t fallback) {
  if (!has(name)) return fallback;
  const auto text = this->text(name);
  const auto value = parse_integer(text);
  require(value.has_value(), "{}=\"{}\", wanted an integer", name, text.substr(0, 80));
  return *value;
}

double Lowering::number(const char* name) {
  want(name);
  return number(name, 0);
}

double Lowering::number(const char* name, double fallback) {
  if (!has(name)) return fallback;
  const auto text = this->text(name);
  const auto value = parse_number(text);
  require(value && std::isfinite(*value), "{}=\"{}\", wanted a finite number", name, text.substr(0, 80));
  return *value;
}

Ints Lowering::list(const char* name) {
  want(name);
  return integers(name);
}

Floats Lowering::numbers(const char* name) {
  want(name);
  const auto values = parse_numbers(text(name));
  require(values.has_value(), "{}=\"{}\", wanted numbers", name, text(name).substr(0, 80));
  for (const double value : *values) require(std::isfinite(value), "{} contains {}", name, value);
  return *values;
}

std::string Lowering::word(const char* name, const std::string& fallback) const {
  return ir::lower(text(name, fallback));
}

const Shape& Lowering::declared(std::size_t output) {
  require(output < layer().outputs.size(), "has {} outputs, wanted at least {}", layer().outputs.size(),
          output + 1);
  return layer().outputs[output].shape;
}

Shape Lowering::declared_input(std::size_t i) {
  if (sizes_hold()) return shape(i);
  return i < layer().inputs.size() ? layer().inputs[i].shape : Shape();
}

std::optional<Lowering::DeclaredSizes> Lowering::declared_sizes(std::size_t axis) {
  const Shape in = declared_input(), &out = declared();
  if (in.rank() != rank(0) || out.rank() != rank(0)) return std::nullopt;
  if (!in[axis].known() || !out[axis].known()) return std::nullopt;
  return DeclaredSizes{in[axis].size(), out[axis].size()};
}

ElementType Lowering::declared_element(std::size_t output) const {
  if (output >= layer().outputs.size()) return ElementType::undefined;
  return reading_of().widened(layer().outputs[output].element);
}

Shape Lowering::known_shape(std::size_t i) {
  require(shape(i).known(), "input {} has the shape {}, wanted known sizes", i, to_string(shape(i)));
  return shape(i);
}

std::int64_t Lowering::known_size(std::size_t i, std::size_t axis) {
  require(shape(i)[axis].known(), "input {} has the shape {}, wanted known sizes", i, to_string(shape(i)));
  return shape(i)[axis].size();
}

ValueId Lowering::converted(ValueId value, ElementType type, const std::string& suffix) {
  const ElementType from = graph().type(value).element;
  if (from == type || from == ElementType::undefined) return value;
  Convert convert;
  convert.destination_type = type;
  return add(convert, {value}, suffix);
}

ValueId Lowering::real(std::size_t i) {
  return converted(in(i), ElementType::f32, fmt::format("real_{}", i));
}

ValueId Lowering::integral(std::size_t i) {
  const ValueId value = in(i);
  if (!is_float(graph().type(value).element)) return value;
  if (const auto values = small_constant(graph(), value))
    return constant(convert(*values, ElementType::i64), fmt::format("integers_{}", i));
  return converted(value, ElementType::i64, fmt::format("integers_{}", i));
}

ValueId Lowering::yes_no(std::size_t i) {
  const ValueId value = in(i);
  if (graph().type(value).element == ElementType::boolean) return value;
  return add(NotEqual{}, {value, number_like(0, value, fmt::format("zero_{}", i))},
             fmt::format("holds_{}", i));
}

std::vector<ValueId> Lowering::alike(std::size_t from) {
  std::vector<ValueId> out;
  for (std::size_t i = from; i < inputs(); ++i) out.push_back(in(i));
  ElementType type = declared_element();
  bool same = true;
  for (const ValueId v : out) same = same && graph().type(v).element == graph().type(out[0]).element;
  const bool as_they_are =
      same && !out.empty() && (!is_float(type) || is_float(graph().type(out[0]).element));
  if (as_they_are) return out;
  if (type == ElementType::undefined || type == ElementType::boolean) {
    type = graph().type(out.at(0)).element;
    for (const ValueId v : out)
      if (is_float(graph().type(v).element)) type = graph().type(v).element;
  }
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = converted(out[i], type, fmt::format("alike_{}", i));
  return out;
}

std::optional<Ints> Lowering::known_ints(std::size_t i) {
  const auto values = small_constant(graph(), in(i));
  if (!values) return std::nullopt;
  return to_ints(is_float(values->element_type()) ? convert(*values, ElementType::i64) : *values);
}

pugi::xml_node Lowering::blob_node(const char* name) const {
  const auto node = layer().xml;
  if (const auto blob = node.child("blobs").child(name)) return blob;
  return node.child(name);
}

bool Lowering::is_one_number(const char* name) {
  const auto node = blob_node(name);
  require(!node.empty(), "has no {}", name);
  const auto bytes =
      Blobs::declared_bytes(reading().xml, node, fmt::format("{} of '{}'", name, layer().name));
  return bytes * 8 == static_cast<std::size_t>(bits_of(blob_type(reading().xml, layer(), node)));
}

Tensor Lowering::stored(const char* name, ElementType type, const Dims& dims, Blobs::BitOrder order) {
  const auto node = blob_node(name);
  require(!node.empty(), "has no {}", name);
  const auto what = fmt::format("{} of {} '{}'", name, layer().type, layer().name);
  if (type == ElementType::undefined) type = blob_type(reading().xml, layer(), node);
  Tensor tensor = reading().blobs.tensor(reading().xml, node, what, {type, Shape::of(dims)}, order);
  if (const auto size = Blobs::declared_bytes(reading().xml, node, what); size > tensor.bytes())
    reading().warn(node, fmt::format("{} have {} bytes and need {}", what, size, tensor.bytes()));
  return tensor;
}

ValueId Lowering::blob(const char* name, const Dims& dims) {
  Tensor tensor = stored(name, ElementType::undefined, dims, Blobs::BitOrder::low_first);
  const std::string full = fmt::format("{}/{}", layer().name, name);
  const ValueId value = builder().add_stored(std::move(tensor), full);
  return converted(value, ElementType::f32, name);
}

Tensor Lowering::bits(const char* name, const Dims& dims) {
  return stored(name, ElementType::u1, dims, Blobs::BitOrder::low_first);
}

ValueId Lowering::per_channel(const char* name, std::int64_t channels) {
  return blob(name, {is_one_number(name) ? 1 : channels});
}

ValueId Lowering::reals(const Dims& dims, const std::vector<float>& values, const std::string& suffix) {
  return constant(Tensor::of(dims, values), suffix);
}

ValueId Lowering::reals(const std::vector<float>& values, const std::string& suffix) {
  return reals({std::ssize(values)}, values, suffix);
}

ValueId Lowering::number_like(double value, ValueId like, const std::string& suffix) {
  ElementType type = graph().type(like).element;
  if (type == ElementType::undefined) type = ElementType::f32;
  return constant(from_doubles(type, {}, {value}), suffix);
}

ValueId Lowering::reshaped(ValueId value, const Ints& pattern, const std::string& suffix) {
  Reshape reshape;
  reshape.special_zero = true;
  return add(reshape, {value, constant(pattern, suffix + "_shape")}, suffix);
}

ValueId Lowering::cropped(ValueId value, const Ints& begin, const Ints& end) {
  const auto is_zero = [](std::int64_t n) { return n == 0; };
  if (std::all_of(begin.begin(), begin.end(), is_zero) && std::all_of(end.begin(), end.end(), is_zero))
    return value;
  Ints axes(begin.size()), to;
  std::iota(axes.begin(), axes.end(), 2);
  for (const auto n : end) to.push_back(n == 0 ? INT64_MAX : -n);
  return add(Slice{},
             {value, constant(begin, "crop_begin"), constant(to, "crop_end"),
              constant(Ints(begin.size(), 1), "crop_step"), constant(axes, "crop_axes")},
             "cropped");
}

// Old layers compute in one type; lamina's operators give indices and truth values in their own.
ValueId Lowering::resolved_type(ValueId value, std::size_t output) {
  const ElementType type = declared_element(output), made = graph().type(value).element;
  const bool is_number = type == ElementType::f32 || type == ElementType::f64 || type == ElementType::i32 ||
                         type == ElementType::i64;
  const bool wanted = is_number || (made == ElementType::boolean && type != ElementType::undefined);
  return wanted ? converted(value, type, fmt::format("as_{}_{}", name_of(type), output)) : value;
}

ValueId Lowering::resolved_rank(ValueId value, std::size_t output) {
  const Shape& made = graph().type(value).shape;
  const Shape& wanted = layer().outputs[output].shape;
  if (!made.known() || !sizes_hold() || made == wanted) return value;
  const Dims sizes = wanted.sizes();
  if (!without_ones_equal(made.sizes(), sizes)) return value;
  return reshaped(value, Ints(sizes.begin(), sizes.end()), fmt::format("ranked_{}", output));
}

void Lowering::resolve() {
  for (std::size_t i = 0; i < outputs_.size(); ++i)
    if (outputs_[i].valid()) outputs_[i] = resolved_rank(resolved_type(outputs_[i], i), i);
}

const LoweringTable& lowerings() {
  static const ProcessLifetime all([] {
    LoweringTable t;
    for (const auto add :
         {register_windows, register_linear, register_elementwise, register_shaping, register_selection,
          register_resizing, register_detection, register_recurrent, register_control})
      add(t);
    return t;
  });
  return *all;
}

void lower_layer(GraphBuilder& builder, std::uint32_t index, std::vector<ValueId>& outputs) {
  Lowering c(builder, index, outputs);
  if (convert_custom(c)) return;
  const Converter converter = lowerings().find(c.layer().type);
  converter ? converter(c) : lower_alike(c);
  c.resolve();
}

}  // namespace lamina::ir::legacy
