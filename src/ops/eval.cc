#include "ops/eval.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "base/half.h"

namespace lamina {
namespace {

template <class T>
double number(T v) {
  if constexpr (std::is_same_v<T, f16_t> || std::is_same_v<T, bf16_t>)
    return to_float(v);
  else
    return static_cast<double>(v);
}

template <class To, class From>
To cast(From v) {
  if constexpr (std::is_same_v<To, f16_t>)
    return to_f16(static_cast<float>(v));
  else if constexpr (std::is_same_v<To, bf16_t>)
    return to_bf16(static_cast<float>(v));
  else if constexpr (std::is_same_v<To, bool>)
    return v != 0;
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (std::isnan(v)) return 0;
    if (v <= static_cast<From>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    if (v >= static_cast<From>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    return static_cast<To>(v);
  } else
    return static_cast<To>(v);
}

/// Calls f.template operator()<T>() with the C++ type of a byte-sized or larger element type.
template <class F>
auto with_type(ElementType type, F&& f) {
  switch (type) {
    case ElementType::f32:
      return f.template operator()<float>();
    case ElementType::f16:
      return f.template operator()<f16_t>();
    case ElementType::bf16:
      return f.template operator()<bf16_t>();
    case ElementType::f64:
      return f.template operator()<double>();
    case ElementType::i64:
      return f.template operator()<std::int64_t>();
    case ElementType::i32:
      return f.template operator()<std::int32_t>();
    case ElementType::i16:
      return f.template operator()<std::int16_t>();
    case ElementType::i8:
      return f.template operator()<std::int8_t>();
    case ElementType::u64:
      return f.template operator()<std::uint64_t>();
    case ElementType::u32:
      return f.template operator()<std::uint32_t>();
    case ElementType::u16:
      return f.template operator()<std::uint16_t>();
    case ElementType::u8:
      return f.template operator()<std::uint8_t>();
    case ElementType::boolean:
      return f.template operator()<bool>();
    default:
      fail(ErrorCode::unsupported, "element type {} is not supported here", name_of(type));
  }
}

bool packed(ElementType type) { return bits_of(type) < 8; }

template <class To>
std::vector<To> numbers(const Tensor& t) {
  if (packed(t.element_type()) || t.element_type() == ElementType::boolean) {
    const auto ints = to_ints(t);
    return std::vector<To>(ints.begin(), ints.end());
  }
  std::vector<To> out(t.size());
  with_type(t.element_type(), [&]<class T>() {
    for (std::size_t i = 0; i < out.size(); ++i) {
      T v;
      std::memcpy(&v, t.raw() + i * sizeof(T), sizeof(T));
      if constexpr (std::is_same_v<To, double>)
        out[i] = number(v);
      else
        out[i] = static_cast<To>(number(v));
    }
  });
  return out;
}

void write_packed(Tensor& out, const Ints& values) {
  const auto bits = static_cast<std::size_t>(bits_of(out.element_type()));
  std::memset(out.raw(), 0, out.bytes());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto v = static_cast<std::uint64_t>(values[i]) & ((1u << bits) - 1);
    out.raw()[i * bits / 8] |= static_cast<std::byte>(v << (i * bits % 8));
  }
}

template <class From>
void write(Tensor& out, const std::vector<From>& values) {
  LAMINA_CHECK(values.size() == out.size(), "{} values for {} elements", values.size(), out.size());
  if (packed(out.element_type())) {
    Ints ints(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) ints[i] = cast<std::int64_t>(values[i]);
    return write_packed(out, ints);
  }
  with_type(out.element_type(), [&]<class T>() {
    auto* to = reinterpret_cast<T*>(out.raw());
    for (std::size_t i = 0; i < values.size(); ++i) to[i] = cast<T>(values[i]);
  });
}

Ints whole_numbers(const Tensor& t) {
  if (!is_float(t.element_type())) return to_ints(t);
  Ints out(t.size());
  const auto values = to_doubles(t);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = cast<std::int64_t>(values[i]);
  return out;
}

}  // namespace

std::vector<double> to_doubles(const Tensor& tensor) { return numbers<double>(tensor); }
std::vector<float> to_floats(const Tensor& tensor) { return numbers<float>(tensor); }

Tensor from_doubles(ElementType type, const Dims& shape, const std::vector<double>& values) {
  Tensor out(type, shape);
  write(out, values);
  return out;
}

Tensor from_ints(ElementType type, const Dims& shape, const Ints& values) {
  Tensor out(type, shape);
  write(out, values);
  return out;
}

Tensor convert(const Tensor& tensor, ElementType type) {
  if (tensor.element_type() == type) return tensor;
  Tensor out(type, tensor.shape());
  if (is_float(tensor.element_type()))
    write(out, to_doubles(tensor));
  else
    write(out, to_ints(tensor));
  return out;
}

EvalContext::EvalContext(const Node& node, const std::vector<Tensor>& inputs, RunBody run_body)
    : node_(node), inputs_(inputs), run_body_(std::move(run_body)) {
  InferContext infer(node, inputs);
  node.op->infer(infer);
  out_types_ = std::move(infer.result());
  out_.resize(out_types_.size());
  for (std::size_t i = 0; i < out_.size(); ++i)
    if (out_types_[i].element != ElementType::undefined && out_types_[i].shape.known())
      out_[i] = Tensor(out_types_[i].element, out_types_[i].shape.sizes());
}

const Tensor& EvalContext::in(std::size_t i) const {
  if (!has(i)) fail(ErrorCode::bad_input, "input {} is missing", i);
  return inputs_[i];
}

std::vector<double> EvalContext::doubles(std::size_t i) const { return to_doubles(in(i)); }
std::vector<float> EvalContext::floats(std::size_t i) const { return to_floats(in(i)); }
Ints EvalContext::ints(std::size_t i) const { return whole_numbers(in(i)); }

Tensor& EvalContext::out(std::size_t i) {
  LAMINA_CHECK(out_.at(i).valid(), "output {} of {} has no shape yet", i, node_.op.name());
  return out_[i];
}

Tensor& EvalContext::allocate(std::size_t i, const Dims& shape) {
  return out_.at(i) = Tensor(out_types_.at(i).element, shape);
}

void EvalContext::store(std::size_t i, const std::vector<double>& values) { write(out(i), values); }
void EvalContext::store(std::size_t i, const std::vector<float>& values) { write(out(i), values); }
void EvalContext::store(std::size_t i, const Ints& values) { write(out(i), values); }

std::vector<Tensor> evaluate_node(const Node& node, const std::vector<Tensor>& inputs,
                                  const RunBody& run_body) {
  std::vector<Tensor> aligned(inputs);
  for (auto& t : aligned)
    if (t.valid()) t = t.to_aligned();
  const auto base = base_inputs(node);
  EvalContext context(node, aligned, run_body);
  node.op->evaluate(context);
  auto results = std::move(context.results());
  if (const Graph* body = epilogue(node)) {
    std::vector<Tensor> parameters{results.at(0)};
    parameters.insert(parameters.end(), aligned.begin() + static_cast<std::ptrdiff_t>(base), aligned.end());
    results[0] = run_body(*body, parameters).at(0);
  }
  return results;
}

}  // namespace lamina
