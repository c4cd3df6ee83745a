#include "extension/custom_op.h"

#include <algorithm>

#include "base/error.h"
#include "base/nearest.h"
#include "extension/arrange.h"
#include "extension/attribute_text.h"
#include "extension/kernel.h"
#include "graph/permute.h"
#include "graph/work.h"
#include "ops/eval.h"

namespace lamina {
namespace {

/// Bytes of a constant that inference does not look at any more: such are forgotten once they are packed, and
/// what is inferred must not depend on that.
constexpr std::size_t kNotLookedAt = 4096;

Attribute zero_of(std::int32_t kind) {
  switch (kind) {
    case LAMINA_BOOL:
      return false;
    case LAMINA_INT:
      return std::int64_t{0};
    case LAMINA_FLOAT:
      return 0.0;
    case LAMINA_INTS:
      return Ints();
    case LAMINA_FLOATS:
      return Floats();
    case LAMINA_STRINGS:
      return Strings();
    case LAMINA_TENSOR:
      return Tensor();
    default:
      return std::string();
  }
}

/// The value as one of the kind, where a number or a list of one is as good; else nothing.
std::optional<Attribute> as_kind(std::int32_t kind, const Attribute& value) {
  if (value.index() == zero_of(kind).index()) return value;
  const auto* integer = std::get_if<std::int64_t>(&value);
  const auto* integers = std::get_if<Ints>(&value);
  const auto* text = std::get_if<std::string>(&value);
  if (integer && kind == LAMINA_BOOL && (*integer == 0 || *integer == 1)) return *integer != 0;
  if (integer && kind == LAMINA_FLOAT) return static_cast<double>(*integer);
  if (integer && kind == LAMINA_INTS) return Ints{*integer};
  if (integers && kind == LAMINA_FLOATS) return Floats(integers->begin(), integers->end());
  if (const auto* real = std::get_if<double>(&value); real && kind == LAMINA_FLOATS) return Floats{*real};
  if (text && kind == LAMINA_STRINGS) return Strings{*text};
  return std::nullopt;
}

/// Small integers that follow from shapes count as known.
Tensor known_value(InferContext& c, std::size_t i) {
  const auto& type = c.type(i);
  if (!type.shape.known()) return {};
  const auto count = element_count(type.shape.sizes());
  const auto bits = static_cast<std::size_t>(bits_of(type.element));
  if (count / 8 >= kNotLookedAt || (count * bits + 7) / 8 >= kNotLookedAt) return {};
  if (const auto constant = c.constant(i)) return *constant;
  if (!is_integer(type.element) || bits < 8 || count * 8 >= kNotLookedAt) return {};
  const auto ints = c.ints(i);
  if (!ints || ints->size() != count) return {};
  return from_ints(type.element, type.shape.sizes(), *ints);
}

Tensor as_type(const Tensor& t, ElementType type) {
  return t.valid() && t.element_type() != type ? convert(t.to_aligned(), type) : t;
}

/// The inputs as inference knows them; checks them against the ports. False: the type of one is not known.
bool known_inputs(InferContext& c, const DeclaredOperation& op, std::vector<KnownTensor>& in) {
  const auto count = c.inputs();
  for (std::size_t i = 0; i < std::max(count, op.in.size()); ++i) {
    const auto* port = op.port(op.in, i);
    c.require(port || !c.has(i), "has {} inputs, wanted at most {}", count, op.in.size());
    if (!c.has(i)) {
      if (port) c.require(port->optional || port->variadic, "input {} \"{}\" is missing", i, port->name);
      if (i < count) in.push_back({false, {}, {}});
      continue;
    }
    auto type = c.type(i);
    if (type.element == ElementType::undefined) return false;
    type.element = port->as_taken(type.element);
    c.require(port->takes(type.element), "input {} \"{}\" is {}, wanted {}", i, port->name,
              name_of(type.element), [&] {
                std::string all;
                for (const auto t : port->types) all += (all.empty() ? "" : ", ") + std::string(name_of(t));
                return all;
              }());
    in.push_back({true, type, as_type(known_value(c, i), type.element)});
  }
  return true;
}

/// The type of halves that an input is, and the library sees as f32; undefined: none.
ElementType widened_halves(InferContext& c, const DeclaredOperation& op) {
  for (std::size_t i = 0; i < c.inputs(); ++i) {
    const auto* port = op.port(op.in, i);
    if (port && c.has(i) && port->as_taken(c.element(i)) != c.element(i)) return c.element(i);
  }
  return ElementType::undefined;
}

/// Where inputs are such halves, outputs that the library makes in f32 are such, too, until the whole model
/// is widened.
TensorType as_in_model(TensorType made, const DeclaredPort* port, ElementType halves) {
  if (halves != ElementType::undefined && made.element == ElementType::f32 && port && !port->takes(halves))
    made.element = halves;
  return made;
}

/// The type of an output without infer(): that of input 0.
TensorType usual_type(InferContext& c, const DeclaredOperation& op, std::size_t output) {
  const auto* port = op.port(op.out, output);
  const bool like = c.has(0);
  c.require(like || op.has(LAMINA_SHAPE_AFTER_RUN), "has no infer(), and input 0 is missing");
  const auto* of = op.port(op.in, 0);
  const auto first = like ? (of ? of->as_taken(c.element(0)) : c.element(0)) : ElementType::undefined;
  const auto element = !port || (like && port->takes(first)) ? first : port->types[0];
  return {element, op.has(LAMINA_SHAPE_AFTER_RUN) || !like ? Shape() : c.shape(0)};
}

}  // namespace

CustomOp::CustomOp(std::shared_ptr<const DeclaredOperation> declared) : declared_(std::move(declared)) {
  values_.resize(declared_->attributes.size());
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const auto& a = declared_->attributes[i];
    values_[i].given = a.value.has_value();
    values_[i].value = a.value ? *a.value : zero_of(a.kind);
    describe(i);
  }
}

/// What the border sees of the value.
void CustomOp::describe(std::size_t i) {
  auto& v = values_[i];
  v.texts.clear();
  if (const auto* texts = std::get_if<Strings>(&v.value))
    for (const auto& text : *texts) v.texts.push_back(text.c_str());
  v.tensor = {};
  const auto* tensor = std::get_if<Tensor>(&v.value);
  if (!tensor || !tensor->valid()) return;
  v.tensor.struct_size = sizeof(v.tensor);
  v.tensor.data = const_cast<std::byte*>(tensor->raw());
  v.tensor.bytes = tensor->bytes();
  v.tensor.type = border_type(tensor->element_type());
  v.tensor.rank = static_cast<std::int32_t>(tensor->rank());
  v.tensor.dims = tensor->shape().data();
  v.strides = strides_in(tensor->shape(), LAMINA_PLAIN);
  v.tensor.strides = v.strides.data();
  v.tensor.elements = tensor->size();
}

const CustomOp::Value* CustomOp::find(std::string_view name, std::int32_t kind) const {
  for (std::size_t i = 0; i < values_.size(); ++i)
    if (declared_->attributes[i].name == name && declared_->attributes[i].kind == kind) return &values_[i];
  return nullptr;
}

void CustomOp::require_attributes() const {
  for (std::size_t i = 0; i < values_.size(); ++i)
    if (!values_[i].given)
      fail(ErrorCode::bad_file, "attribute \"{}\" is missing, wanted {}", declared_->attributes[i].name,
           name_of_kind(declared_->attributes[i].kind));
}

std::vector<NamedAttribute> CustomOp::attributes() const {
  std::vector<NamedAttribute> out;
  for (std::size_t i = 0; i < values_.size(); ++i)
    out.push_back({declared_->attributes[i].name, values_[i].value, Owner::openvino});
  return out;
}

std::vector<NamedAttribute> CustomOp::changed_attributes() const {
  std::vector<NamedAttribute> out;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const auto& a = declared_->attributes[i];
    if (values_[i].given && !(a.value && equal_attribute(*a.value, values_[i].value)))
      out.push_back({a.name, values_[i].value, Owner::openvino});
  }
  return out;
}

void CustomOp::set(std::string_view name, const Attribute& value) {
  Strings names;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const auto& a = declared_->attributes[i];
    names.push_back(a.name);
    if (a.name != name) continue;
    auto fitting = as_kind(a.kind, value);
    if (!fitting) wrong_attribute(*this, name, value, name_of_kind(a.kind));
    if (const auto* t = std::get_if<Tensor>(&*fitting); t && border_type(t->element_type()) == LAMINA_NO_TYPE)
      fail(ErrorCode::bad_file, "attribute \"{}\" is a tensor of {}, which libraries do not know", name,
           name_of(t->element_type()));
    values_[i].value = std::move(*fitting);
    values_[i].given = true;
    return describe(i);
  }
  fail(ErrorCode::bad_file, "{} has no attribute \"{}\"{}, it has: {}", declared_->name(), name,
       did_you_mean(name, names), names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
}

std::unique_ptr<AnyOp> CustomOp::copy() const {
  auto out = std::make_unique<CustomOp>(declared_);
  for (std::size_t i = 0; i < values_.size(); ++i) {
    out->values_[i].value = values_[i].value;
    out->values_[i].given = values_[i].given;
    out->describe(i);
  }
  return out;
}

void CustomOp::infer(InferContext& c) const {
  const auto& op = *declared_;
  std::vector<KnownTensor> in;
  if (!known_inputs(c, op, in)) return;
  c.require(c.outputs() <= op.out.size() || op.out.back().variadic, "has {} outputs, wanted at most {}",
            c.outputs(), op.out.size());
  const auto halves = widened_halves(c, op);
  if (!op.calls.infer) {
    for (std::size_t i = 0; i < c.outputs(); ++i)
      c.set(i, as_in_model(usual_type(c, op, i), op.port(op.out, i), halves));
    return;
  }
  lamina_context context(this);
  context.infers = true;
  context.outputs.resize(c.outputs());
  const BorderNode node(context, in, c.outputs());
  try {
    call_library(context, where(), "infer", [&] { return op.calls.infer(node.get()); });
  } catch (const Error& e) {
    c.fail("{}", e.what());
  }
  for (std::size_t i = 0; i < c.outputs(); ++i) {
    c.require(context.outputs[i].has_value(), "{}: infer does not set output {}", where(), i);
    const auto* port = op.port(op.out, i);
    c.require(port->takes(context.outputs[i]->element), "{}: infer: output {} \"{}\" is {}", where(), i,
              port->name, name_of(context.outputs[i]->element));
    c.set(i, as_in_model(*context.outputs[i], port, halves));
  }
}

void CustomOp::evaluate(EvalContext& c) const {
  std::vector<Tensor> in;
  const auto inputs = std::min(c.inputs(), base_inputs(c.node()));
  const auto& op = *declared_;
  for (std::size_t i = 0; i < inputs; ++i) {
    const auto* port = op.port(op.in, i);
    in.push_back(!c.has(i) ? Tensor()
                 : port    ? as_type(c.in(i), port->as_taken(c.in(i).element_type()))
                           : c.in(i));
  }
  std::vector<TensorType> out;
  for (std::size_t i = 0; i < c.outputs(); ++i) {
    const bool ready = c.results()[i].valid();
    const auto* port = op.port(op.out, i);
    out.push_back({port ? port->as_taken(c.out_element(i)) : c.out_element(i),
                   ready ? Shape::of(c.results()[i].shape()) : Shape()});
  }
  KernelNode node;
  node.op = c.node().op;
  node.label = c.node().name;
  auto results = run_custom(std::move(node), in, out, false);
  for (std::size_t i = 0; i < c.outputs(); ++i) c.set(i, as_type(results[i], c.out_element(i)));
}

Verdict CustomOp::permute(PermuteContext& c) const {
  if (declared_->calls.elementwise) return permute_elementwise(c);
  return Verdict::no("{} depends on the order of its axes", declared_->type);
}

NodeWork CustomOp::work(const WorkContext& c) const { return usual_work(c); }

}  // namespace lamina
