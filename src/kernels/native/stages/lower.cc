/// From a body of element-wise operators to loops: values, the types that are carried, views of operands.
#include <algorithm>

#include "base/element_types.h"
#include "base/shape_only.h"
#include "kernels/native/stages/lowering.h"
#include "ops/elementwise.h"

namespace lamina::stages {
bool Lowering::run() {
  const auto result = body_.results().at(0).value;
  for (const auto id : needed(result)) {
    const auto value = lower(body_.node(id));
    if (value == kNone) return false;
    made_[body_.node(id).outputs[0]] = {value, body_.type(body_.node(id).outputs[0]).element};
  }
  return finish(result);
}

std::vector<NodeId> Lowering::needed(ValueId result) const {
  std::vector<bool> wanted(body_.node_slots(), false);
  std::vector<ValueId> work{result};
  while (!work.empty()) {
    const auto p = body_.producer(work.back());
    work.pop_back();
    if (!p.valid() || wanted[p.index]) continue;
    wanted[p.index] = true;
    for (auto v : body_.node(p).inputs)
      if (v.valid()) work.push_back(v);
  }
  std::vector<NodeId> out;
  for (const auto id : body_.order())
    if (wanted[id.index]) out.push_back(id);
  return out;
}

int Lowering::read(ValueId v, const Dims* placed) {
  if (const auto it = made_.find(v); it != made_.end() && !placed) {
    it->second.value = rounded(it->second.value, it->second.type);
    it->second.type = carrier(it->second.type);
    return it->second.value;
  }
  const auto& type = body_.type(v);
  const Dims dims = placed ? *placed : type.shape.sizes();
  const auto key = std::pair(v, dims);
  if (const auto it = viewed_.find(key); it != viewed_.end()) return it->second;
  if (body_.producer(v).valid())  // never in practice: slopes and scales are parameters or constants
    return refuse(fmt::format("'{}' is computed and not laid out as it is read", body_.value(v).name));
  return viewed_[key] = load(v, type.element, dims);
}

int Lowering::load(ValueId v, ElementType element, const Dims& dims) {
  View view;
  view.axis_strides = strides_to(dims, target_);
  if (const auto* constant = constant_of(v)) {
    view.constant = constant->reshaped(dims);
    view.carried = carrier(element);
    view.bytes = bytes_of(view.carried);
    view.reorders = dims.size() == target_.dims.size() && target_.layout != Layout::plain && dims[1] != 1 &&
                    element_count(dims) != static_cast<std::size_t>(dims[0] * dims[1]);
    return add(std::move(view));
  }
  const auto& p = parameter(v);
  view.input = p.input;
  view.is_tile = p.is_tile;
  view.bytes = bytes_of(element);
  const auto loaded = add(std::move(view));
  return is_half(element) ? converted(loaded, element, ElementType::f32) : loaded;
}

const Parameter& Lowering::parameter(ValueId v) const {
  const auto& inputs = body_.inputs();
  const auto it = std::find(inputs.begin(), inputs.end(), v);
  LAMINA_CHECK(it != inputs.end(), "'{}' is no parameter", body_.value(v).name);
  return parameters_.at(static_cast<std::size_t>(it - inputs.begin()));
}

const Tensor* Lowering::constant_of(ValueId v) const {
  if (const auto* t = body_.constant(v)) return t;
  return body_.value(v).kind == ValueKind::input ? parameter(v).constant : nullptr;
}

std::optional<double> Lowering::constant_number(ValueId v) const {
  const auto* t = v.valid() ? constant_of(v) : nullptr;
  return t && t->size() == 1 ? std::optional(to_doubles(*t)[0]) : std::nullopt;
}

int Lowering::lower(const Node& n) {
  const auto lacks = [&](ValueId v) { return is_storage_type(body_.type(v).element); };
  for (auto v : n.inputs)
    if (v.valid() && lacks(v)) return refuse(fmt::format("no loops for {}", name_of(body_.type(v).element)));
  if (lacks(n.outputs[0]))
    return refuse(fmt::format("no loops for {}", name_of(body_.type(n.outputs[0]).element)));
  if (!n.op.has(Trait::elementwise)) return refuse(n.op.name() + " is not element-wise");
  if (n.op.is<Convert>() || n.op.is<ConvertLike>()) return lower_convert(n);
  if (n.op.is<Select>()) return lower_select(n);
  if (const auto* q = n.op.as<FakeQuantize>()) return lower_fake_quantize(n, *q);
  if (const auto* q = n.op.as<Quantize>()) return lower_quantize(n, *q);
  if (const auto* q = n.op.as<Dequantize>()) return lower_dequantize(n, *q);
  const auto type = carrier(body_.type(n.inputs[0]).element);
  if (type == ElementType::f32) return lower_f32(n);
  if (type == ElementType::f64) return lower_f64(n);
  return lower_integer(n, type);
}

bool Lowering::finish(ValueId result) {
  const auto type = body_.type(result).element;
  out_.result_bytes = bytes_of(type);
  int value;
  const auto it = made_.find(result);
  if (is_half(type) && it != made_.end() && it->second.type == type) {
    value = converted(it->second.value, ElementType::f32, type);  // this rounds
  } else {
    value = read(result);
    if (value == kNone) return false;
    if (is_half(type)) value = converted(value, ElementType::f32, type);
  }
  const int last = kFirstOperation + static_cast<int>(out_.operations.size()) - 1;
  if (value != last) operation(copy_loop(out_.result_bytes), {value}, out_.result_bytes, 0.1);
  renumber();
  return true;
}

void Lowering::renumber() {
  const int shift = static_cast<int>(out_.views.size()) - kFirstOperation;
  for (auto& o : out_.operations)
    for (auto& x : o.in)
      if (x >= kFirstOperation) x += shift;
}

void arrange_constants(Routine& code, WeightStore& weights) {
  for (auto& view : code.body.views) {
    const auto& source = view.constant;
    if (!source.valid() || (!view.reorders && source.aligned() && source.element_type() == view.carried))
      continue;
    const auto layout = view.reorders ? code.target.layout : Layout::plain;
    const auto key = fmt::format("stage {} {} [{}]", name_of(view.carried), name_of(layout),
                                 fmt::join(source.shape(), ","));
    const auto size = size_laid_out(shape_only(view.carried, source.shape()), layout);
    view.constant = weights.moved(source, key, size, [&, dims = source.shape()](const Tensor& t) {
      return laid_out(convert(t.to_aligned(), view.carried).reshaped(dims), layout);
    });
    view.reorders = false;
  }
}

Dims strides_to(const Dims& dims, const Target& target, std::int64_t row) {
  const auto rank = target.dims.size();
  if (element_count(dims) == 1) return Dims(rank, 0);  // a parameter may have more axes than the tensor
  LAMINA_CHECK(dims.size() <= rank, "{} does not broadcast to {}", to_string(dims), to_string(target.dims));
  auto own = lamina::strides_of(dims, dims.size() == rank ? target.layout : Layout::plain);
  if (row != 0)
    for (std::size_t i = 0; i < own.size(); ++i)
      if (i != 1) own[i] = own[i] / dims[1] * row;
  Dims strides(rank, 0);
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims[i] != 1) strides[i + rank - dims.size()] = own[i];
  return strides;
}

bool lower(const Graph& body, const std::vector<Parameter>& parameters, const Target& target, Lowered& out,
           std::string& why) {
  return Lowering(body, parameters, target, out, why).run();
}

}  // namespace lamina::stages
