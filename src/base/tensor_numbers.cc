#include "base/tensor_numbers.h"

#include <algorithm>
#include <cstring>

#include "base/cancellation.h"
#include "base/convert_number.h"
#include "base/error.h"
#include "base/half.h"
#include "base/work_bounds.h"

namespace lamina {
namespace {

using Ints = std::vector<std::int64_t>;

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

template <class T>
Ints read_as(const Tensor& tensor) {
  Ints out(tensor.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    T v;
    std::memcpy(&v, tensor.raw() + i * sizeof(T), sizeof(T));
    out[i] = static_cast<std::int64_t>(v);
  }
  return out;
}

Ints read_packed(const Tensor& tensor) {
  const int bits = bits_of(tensor.element_type());
  Ints out(tensor.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t bit = i * static_cast<std::size_t>(bits);
    int v = (std::to_integer<int>(tensor.raw()[bit / 8]) >> (bit % 8)) & ((1 << bits) - 1);
    if (is_signed(tensor.element_type()) && v >= 1 << (bits - 1)) v -= 1 << bits;
    out[i] = v;
  }
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

template <class From>
void write_numbers(Tensor& out, const std::vector<From>& values) {
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
template void write_numbers(Tensor&, const std::vector<double>&);
template void write_numbers(Tensor&, const std::vector<float>&);
template void write_numbers(Tensor&, const std::vector<std::int64_t>&);
template void write_numbers(Tensor&, const std::vector<std::uint64_t>&);

template <class T>
Tensor from_numbers(ElementType type, const Dims& shape, const std::vector<T>& values) {
  Tensor out(type, shape);
  write_numbers(out, values);
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
  with_number_type(tensor.element_type(), [&]<class T>() { write_numbers(out, to_numbers<T>(tensor)); });
  return out;
}

Tensor convert(const Tensor& tensor, ElementType type, SmallFloatRounding rounding) {
  Tensor out(type, tensor.shape());
  LAMINA_CHECK(is_small_float(type), "{} is no small float", name_of(type));
  with_number_type(tensor.element_type(),
                   [&]<class T>() { write_small_floats(out, to_numbers<T>(tensor), rounding); });
  return out;
}

Ints to_ints(const Tensor& tensor) {
  switch (tensor.element_type()) {
    case ElementType::i64:
      return read_as<std::int64_t>(tensor);
    case ElementType::i32:
      return read_as<std::int32_t>(tensor);
    case ElementType::i16:
      return read_as<std::int16_t>(tensor);
    case ElementType::i8:
      return read_as<std::int8_t>(tensor);
    case ElementType::u64: {
      auto out = read_as<std::uint64_t>(tensor);
      for (auto& v : out) v = v < 0 ? INT64_MAX : v;
      return out;
    }
    case ElementType::u32:
      return read_as<std::uint32_t>(tensor);
    case ElementType::u16:
      return read_as<std::uint16_t>(tensor);
    case ElementType::u8:
      return read_as<std::uint8_t>(tensor);
    case ElementType::boolean: {
      auto out = read_as<std::uint8_t>(tensor);
      for (auto& v : out) v = v != 0;
      return out;
    }
    case ElementType::u1:
    case ElementType::i4:
    case ElementType::u4:
    case ElementType::i2:
    case ElementType::u2:
      return read_packed(tensor);
    default:
      fail(ErrorCode::bad_file, "tensor holds {}, wanted integers", name_of(tensor.element_type()));
  }
}

}  // namespace lamina
