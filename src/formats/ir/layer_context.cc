#include "formats/ir/layer_context.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "formats/ir/text.h"
#include "graph/infer.h"
#include "ops/operators.h"

namespace lamina::ir {
namespace {

bool contains(std::initializer_list<std::string_view> words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string shortened(std::string_view text) {
  return text.size() <= 80 ? std::string(text) : std::string(text.substr(0, 80)) + "...";
}

template <class T>
Attribute or_throw(const std::optional<T>& value, std::string_view wanted) {
  if (!value) throw wanted;
  return *value;
}

Strings split_words(std::string_view text) {
  Strings out;
  for (const auto word : split_list(text)) out.push_back(lower(word));
  return out;
}

/// The text as an attribute of the same kind as `like`; throws the wanted kind as a string_view.
Attribute parse_as(const Attribute& like, std::string_view text) {
  if (std::holds_alternative<bool>(like)) return or_throw(parse_boolean(text), "true or false");
  if (std::holds_alternative<std::int64_t>(like)) return or_throw(parse_integer(text), "an integer");
  if (std::holds_alternative<double>(like)) return or_throw(parse_number(text), "a number");
  if (std::holds_alternative<Ints>(like)) return or_throw(parse_integers(text), "integers");
  if (std::holds_alternative<Floats>(like)) return or_throw(parse_numbers(text), "numbers");
  if (std::holds_alternative<Strings>(like)) return split_words(text);
  if (std::holds_alternative<ElementType>(like)) return or_throw(parse_element_type(text), "an element type");
  if (std::holds_alternative<Shape>(like)) return or_throw(parse_shape(text), "a shape");
  return std::string(text);
}

}  // namespace

LayerContext::LayerContext(GraphBuilder& builder, std::uint32_t index, std::vector<ValueId>& outputs)
    : builder_(builder), outputs_(outputs), index_(index), layer_(builder.network().layers[index]) {}

ValueId LayerContext::in(std::size_t i) {
  require(i < inputs(), "has {} inputs, wanted at least {}", inputs(), i + 1);
  return builder_.value(layer_.feeds[i]);
}

ValueId LayerContext::in_or_none(std::size_t i) { return i < inputs() ? in(i) : ValueId(); }

std::vector<ValueId> LayerContext::all_inputs() {
  std::vector<ValueId> out;
  for (std::size_t i = 0; i < inputs(); ++i) out.push_back(in(i));
  return out;
}

std::size_t LayerContext::rank(std::size_t i) {
  require(shape(i).ranked(), "input {} has an unknown rank, which this layer needs", i);
  return shape(i).rank();
}

std::optional<Ints> LayerContext::constant_ints(std::size_t i) {
  const Tensor* tensor = graph().constant(in(i));
  if (!tensor || !is_integer(tensor->element_type()) || bits_of(tensor->element_type()) < 8)
    return std::nullopt;
  return to_ints(*tensor);
}

void LayerContext::want_inputs(std::size_t low, std::size_t high) {
  if (inputs() >= low && inputs() <= high) return;
  if (low == high) fail("has {} inputs, wanted {}", inputs(), low);
  fail("has {} inputs, wanted {} to {}", inputs(), low, high);
}

std::string LayerContext::text(const char* name, const std::string& fallback) const {
  const auto attribute = layer_.data.attribute(name);
  return attribute ? std::string(trim(attribute.value())) : fallback;
}

bool LayerContext::boolean(const char* name, bool fallback) const {
  if (!has(name)) return fallback;
  return std::get<bool>(parse_like({name, false}, layer_.data.attribute(name).value()));
}

Ints LayerContext::integers(const char* name) const {
  if (!has(name)) return {};
  return std::get<Ints>(parse_like({name, Ints()}, layer_.data.attribute(name).value()));
}

Attribute LayerContext::parse_like(const NamedAttribute& like, std::string_view text) const {
  try {
    return parse_as(like.value, text);
  } catch (std::string_view wanted) {
    fail_text(fmt::format("{}=\"{}\", wanted {}", like.name, shortened(text), wanted));
  }
}

// What no layer may have, whatever its operator checks.
void LayerContext::check_range(const std::string& name, const Attribute& value) const {
  if (const auto* list = std::get_if<Ints>(&value)) {
    const std::int64_t low = contains({"strides", "dilations", "kernel"}, name) ? 1
                             : contains({"pads_begin", "pads_end"}, name)
                                 ? 0
                                 : std::numeric_limits<std::int64_t>::min();
    for (const auto item : *list)
      if (item < low) fail_text(fmt::format("{} contains {}, wanted at least {}", name, item, low));
  }
  const auto check_real = [&](double number) {
    const bool infinite_allowed = contains({"min", "max", "clip"}, name);
    if (std::isnan(number) || (std::isinf(number) && !infinite_allowed))
      fail_text(fmt::format("{} contains {}, wanted a finite number", name, number));
    if (number < 0 && contains({"eps", "epsilon"}, name)) fail_text(fmt::format("{} is negative", name));
  };
  if (const auto* number = std::get_if<double>(&value)) check_real(*number);
  if (const auto* list = std::get_if<Floats>(&value)) std::for_each(list->begin(), list->end(), check_real);
}

Op LayerContext::op(std::string_view name, const std::vector<NamedAttribute>& also) {
  const AnyOp* prototype = operators().find(name);
  if (!prototype) throw NotSupported{};
  auto made = prototype->copy();
  const auto set = [&](const NamedAttribute& attribute) {
    auto* text = std::get_if<std::string>(&attribute.value);
    try {
      made->set(attribute.name, attribute.value);
    } catch (const Error& error) {
      if (!text || lower(*text) == *text) fail_text(error.what());
      made->set(attribute.name, lower(*text));  // INSIDE_SQRT, ERF, ...
    }
  };
  for (NamedAttribute& attribute : made->attributes()) {
    const auto given = layer_.data.attribute(attribute.name.c_str());
    if (!given || attribute.owner == Owner::lamina) continue;
    attribute.value = parse_like(attribute, given.value());
    check_range(attribute.name, attribute.value);
    if (auto* type = std::get_if<ElementType>(&attribute.value)) *type = builder_.reading().widened(*type);
    if (auto* clip = std::get_if<double>(&attribute.value);
        clip && attribute.name == "clip" && std::isinf(*clip))
      *clip = 0;  // both mean: none
    set(attribute);
  }
  for (const NamedAttribute& attribute : also) set(attribute);
  return Op(std::shared_ptr<const AnyOp>(std::move(made)));
}

Op LayerContext::plain_op(std::string_view name, const std::vector<NamedAttribute>& attributes) {
  const AnyOp* prototype = operators().find(name);
  if (!prototype) throw NotSupported{};
  auto made = prototype->copy();
  for (const NamedAttribute& attribute : attributes) made->set(attribute.name, attribute.value);
  return Op(std::shared_ptr<const AnyOp>(std::move(made)));
}

ValueId LayerContext::add(Op op, std::vector<ValueId> inputs, const std::string& suffix) {
  const NodeId node =
      graph().add_node(std::move(op), std::move(inputs), fmt::format("{}/{}", layer_.name, suffix), 1);
  return graph().node(node).outputs[0];
}

ValueId LayerContext::constant(Tensor tensor, const std::string& suffix) {
  return graph().add_constant(std::move(tensor), fmt::format("{}/{}", layer_.name, suffix));
}

ValueId LayerContext::constant(const Ints& list, const std::string& suffix) {
  return constant(Tensor::of(Dims{static_cast<std::int64_t>(list.size())}, list), suffix);
}

void LayerContext::finish(Op op, std::vector<ValueId> inputs, std::vector<Graph> bodies) {
  const OpInfo& info = op.info();
  const auto given = static_cast<int>(std::min<std::size_t>(inputs.size(), kMany));
  if (given < info.min_inputs) fail("has {} inputs, wanted at least {}", given, info.min_inputs);
  if (info.max_inputs != kMany && given > info.max_inputs)
    fail("has {} inputs, wanted at most {}", given, info.max_inputs);
  const std::size_t ports = layer_.outputs.size();
  if (info.outputs != kMany && ports > static_cast<std::size_t>(info.outputs))
    fail("has {} outputs, wanted at most {}", ports, info.outputs);
  const std::size_t outputs = info.outputs == kMany ? ports : static_cast<std::size_t>(info.outputs);
  require(outputs > 0, "has no outputs");
  Strings names;
  for (std::size_t i = 0; i < outputs; ++i)
    names.push_back(i < ports ? output_name(layer_, i) : fmt::format("{}.{}", layer_.name, i));
  const NodeId node = graph().add_node(std::move(op), std::move(inputs), layer_.name,
                                       static_cast<int>(outputs), std::move(bodies), names);
  const Node& made = graph().node(node);
  for (std::size_t i = 0; i < std::min(ports, made.outputs.size()); ++i) outputs_[i] = made.outputs[i];
}

void LayerContext::set_output(std::size_t port, ValueId value) {
  if (port < outputs_.size()) outputs_[port] = value;
}

std::size_t LayerContext::used_outputs() const {
  std::size_t count = layer_.used.size();
  while (count > 0 && !layer_.used[count - 1]) --count;
  return count;
}

void LayerContext::fail_text(const std::string& text) const {
  builder_.reading().xml.fail(layer_.xml, "{} '{}': {}", layer_.type, layer_.name, text);
}

}  // namespace lamina::ir
