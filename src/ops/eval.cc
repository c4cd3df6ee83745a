#include "ops/eval.h"

#include <algorithm>
#include <cstring>

#include "base/cancellation.h"
#include "base/half.h"
#include "base/small_float.h"
#include "base/work_bounds.h"
#include "ops/convert_number.h"

namespace lamina {
namespace {

template <class To, class From>
To cast(From v) {
  if constexpr (std::is_same_v<To, f16_t>)
    return to_f16(static_cast<float>(v));
  else if constexpr (std::is_same_v<To, bf16_t>)
    return to_bf16(static_cast<float>(v));
  else
    return convert_number<To>(v);
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

/// Elements of whole bytes, wherever they lie.
template <class To>
std::vector<To> read(const Tensor& t) {
  require_memory("numbers of a tensor", t.size() * sizeof(To));
  std::vector<To> out(t.size());
  with_type(t.element_type(), [&]<class T>() {
    using Memory = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
    for_pieces(out.size(), [&](std::size_t begin, std::size_t end) {
      for (auto i = begin; i < end; ++i) {
        Memory v;
        std::memcpy(&v, t.raw() + i * sizeof(T), sizeof(T));
        if constexpr (std::is_same_v<T, bool>)
          out[i] = static_cast<To>(v != 0);
        else if constexpr (std::is_same_v<T, f16_t> || std::is_same_v<T, bf16_t>)
          out[i] = cast<To>(to_float(v));
        else
          out[i] = cast<To>(v);
      }
    });
  });
  return out;
}

/// The code of a small float: a byte, or half of one, the low half first.
std::uint8_t code_at(const Tensor& t, std::size_t i) {
  const auto* raw = reinterpret_cast<const std::uint8_t*>(t.raw());
  if (bits_of(t.element_type()) == 8) return raw[i];
  return static_cast<std::uint8_t>(raw[i / 2] >> (i % 2 * 4) & 15);
}

template <class To>
std::vector<To> read_small_floats(const Tensor& t) {
  require_memory("numbers of a tensor", t.size() * sizeof(To));
  std::vector<To> out(t.size());
  for_pieces(out.size(), [&](std::size_t begin, std::size_t end) {
    for (auto i = begin; i < end; ++i) out[i] = cast<To>(small_float_value(t.element_type(), code_at(t, i)));
  });
  return out;
}

template <class From>
void write_small_floats(Tensor& out, const std::vector<From>& values, SmallFloatRounding rounding) {
  const auto type = out.element_type();
  auto* raw = reinterpret_cast<std::uint8_t*>(out.raw());
  const std::size_t per_byte = bits_of(type) == 8 ? 1 : 2;
  for_pieces(out.bytes(), [&](std::size_t begin, std::size_t end) {
    for (auto byte = begin; byte < end; ++byte) {
      raw[byte] = small_float_code(type, static_cast<double>(values[byte * per_byte]), rounding);
      if (const auto second = byte * 2 + 1; per_byte == 2 && second < values.size())
        raw[byte] |= static_cast<std::uint8_t>(
            small_float_code(type, static_cast<double>(values[second]), rounding) << 4);
    }
  });
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
  if (is_small_float(out.element_type())) return write_small_floats(out, values, {});
  if (packed(out.element_type())) {
    Ints ints(values.size());
    const auto [low, high] = integer_range<std::int64_t>(out.element_type());
    for (std::size_t i = 0; i < values.size(); ++i) {
      ints[i] = cast<std::int64_t>(values[i]);
      if constexpr (std::is_floating_point_v<From>) ints[i] = std::clamp(ints[i], low, high);
    }
    return write_packed(out, ints);
  }
  with_type(out.element_type(), [&]<class T>() {
    auto* to = reinterpret_cast<T*>(out.raw());
    for_pieces(values.size(), [&](std::size_t begin, std::size_t end) {
      for (auto i = begin; i < end; ++i) to[i] = cast<T>(values[i]);
    });
  });
}

}  // namespace

template <class T>
std::vector<T> to_numbers(const Tensor& tensor) {
  if (is_small_float(tensor.element_type())) return read_small_floats<T>(tensor);
  if (!packed(tensor.element_type())) return read<T>(tensor);
  const auto ints = to_ints(tensor);
  return std::vector<T>(ints.begin(), ints.end());
}
template std::vector<double> to_numbers(const Tensor&);
template std::vector<float> to_numbers(const Tensor&);
template std::vector<std::int64_t> to_numbers(const Tensor&);
template std::vector<std::uint64_t> to_numbers(const Tensor&);

std::vector<double> to_doubles(const Tensor& tensor) { return to_numbers<double>(tensor); }
std::vector<float> to_floats(const Tensor& tensor) { return to_numbers<float>(tensor); }

template <class T>
Tensor from_numbers(ElementType type, const Dims& shape, const std::vector<T>& values) {
  Tensor out(type, shape);
  write(out, values);
  return out;
}
template Tensor from_numbers(ElementType, const Dims&, const std::vector<double>&);
template Tensor from_numbers(ElementType, const Dims&, const std::vector<std::int64_t>&);
template Tensor from_numbers(ElementType, const Dims&, const std::vector<std::uint64_t>&);

Tensor from_doubles(ElementType type, const Dims& shape, const std::vector<double>& values) {
  return from_numbers(type, shape, values);
}
Tensor from_ints(ElementType type, const Dims& shape, const Ints& values) {
  return from_numbers(type, shape, values);
}

Tensor convert(const Tensor& tensor, ElementType type) {
  if (tensor.element_type() == type) return tensor;
  Tensor out(type, tensor.shape());
  with_number_type(tensor.element_type(), [&]<class T>() { write(out, to_numbers<T>(tensor)); });
  return out;
}

Tensor convert(const Tensor& tensor, ElementType type, SmallFloatRounding rounding) {
  Tensor out(type, tensor.shape());
  LAMINA_CHECK(is_small_float(type), "{} is no small float", name_of(type));
  with_number_type(tensor.element_type(),
                   [&]<class T>() { write_small_floats(out, to_numbers<T>(tensor), rounding); });
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

bool EvalContext::nothing_to_compute() const {
  if (out_.empty() || node_.op.has(Trait::impure)) return false;
  return std::all_of(out_.begin(), out_.end(), [](const Tensor& t) { return t.valid() && t.size() == 0; });
}

const Tensor& EvalContext::in(std::size_t i) const {
  if (!has(i)) fail(ErrorCode::bad_input, "input {} is missing", i);
  return inputs_[i];
}

template <class T>
std::vector<T> EvalContext::numbers(std::size_t i) const {
  return to_numbers<T>(in(i));
}
template std::vector<double> EvalContext::numbers(std::size_t) const;
template std::vector<float> EvalContext::numbers(std::size_t) const;
template std::vector<std::int64_t> EvalContext::numbers(std::size_t) const;
template std::vector<std::uint64_t> EvalContext::numbers(std::size_t) const;

std::vector<double> EvalContext::doubles(std::size_t i) const { return to_doubles(in(i)); }
std::vector<float> EvalContext::floats(std::size_t i) const { return to_floats(in(i)); }
Ints EvalContext::ints(std::size_t i) const {
  return is_float(in(i).element_type()) ? numbers<std::int64_t>(i) : to_ints(in(i));
}

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
void EvalContext::store(std::size_t i, const std::vector<std::uint64_t>& values) { write(out(i), values); }

std::vector<Tensor> evaluate_node(const Node& node, const std::vector<Tensor>& inputs,
                                  const RunBody& run_body) {
  std::vector<Tensor> aligned(inputs);
  for (auto& t : aligned)
    if (t.valid()) t = t.to_aligned();
  const auto base = base_inputs(node);
  EvalContext context(node, aligned, run_body);
  if (!context.nothing_to_compute()) node.op->evaluate(context);
  auto results = std::move(context.results());
  if (const Graph* body = epilogue(node)) {
    std::vector<Tensor> parameters{results.at(0)};
    parameters.insert(parameters.end(), aligned.begin() + static_cast<std::ptrdiff_t>(base), aligned.end());
    results[0] = run_body(*body, parameters).at(0);
  }
  return results;
}

}  // namespace lamina
