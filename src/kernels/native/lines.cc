#include "kernels/native/lines.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/half.h"
#include "base/parallel.h"

namespace lamina {

Lines lines_of(const Dims& out, Layout layout, const std::vector<Dims>& operands) {
  const std::size_t rank = out.size();
  std::vector<std::size_t> order;  // axes as they lie in memory, slowest first
  for (std::size_t i = 0; i < rank; ++i)
    if (!(layout == Layout::channels_last && rank >= 3 && i == 1)) order.push_back(i);
  if (order.size() != rank) order.push_back(1);
  std::vector<Dims> strides;
  for (const auto& dims : operands) {
    const auto own = strides_of(dims, dims.size() == rank ? layout : Layout::plain);
    Dims s(rank, 0);
    for (std::size_t i = 0; i < dims.size(); ++i)
      if (dims[i] != 1) s[i + rank - dims.size()] = own[i];
    strides.push_back(std::move(s));
  }
  Lines lines;
  lines.strides.resize(operands.size());
  for (const auto axis : order) {
    if (out[axis] == 1) continue;
    bool merge = !lines.dims.empty();
    for (std::size_t k = 0; k < operands.size() && merge; ++k)
      merge = lines.strides[k].back() == strides[k][axis] * out[axis];
    for (std::size_t k = 0; k < operands.size(); ++k)
      if (merge)
        lines.strides[k].back() = strides[k][axis];
      else
        lines.strides[k].push_back(strides[k][axis]);
    if (merge)
      lines.dims.back() *= out[axis];
    else
      lines.dims.push_back(out[axis]);
  }
  if (lines.dims.empty()) {
    lines.dims = {1};
    for (auto& s : lines.strides) s = {0};
  }
  return lines;
}

void for_each_chunk(const Lines& lines,
                    const std::function<void(std::int64_t, const std::int64_t*, std::int64_t)>& body) {
  constexpr std::int64_t kGrain = 16384;  // elements worth a thread
  const auto line = lines.dims.back();
  std::int64_t total = 1;
  for (auto d : lines.dims) total *= d;
  const std::size_t operands = lines.strides.size(), outer = lines.dims.size() - 1;
  parallel_for(total, kGrain, [&](std::int64_t begin, std::int64_t end) {
    std::array<std::int64_t, 8> offsets{};
    while (begin < end) {
      const auto in_line = begin % line;
      auto rest = begin / line;
      for (std::size_t k = 0; k < operands; ++k) offsets[k] = in_line * lines.strides[k].back();
      for (std::size_t i = outer; i-- > 0; rest /= lines.dims[i])
        for (std::size_t k = 0; k < operands; ++k) offsets[k] += rest % lines.dims[i] * lines.strides[k][i];
      const auto stop = std::min(end, begin - in_line + line);
      while (begin < stop) {
        const auto count = std::min(kChunk, stop - begin);
        body(begin, offsets.data(), count);
        begin += count;
        for (std::size_t k = 0; k < operands; ++k) offsets[k] += count * lines.strides[k].back();
      }
    }
  });
}

namespace {

template <class T>
float real(T v) {
  if constexpr (std::is_same_v<T, f16_t> || std::is_same_v<T, bf16_t>)
    return to_float(v);
  else
    return static_cast<float>(v);
}

template <class To, class From, class F>
const To* loaded(const void* data, std::int64_t offset, std::int64_t stride, std::int64_t count, To* buffer,
                 F convert) {
  const auto* from = static_cast<const From*>(data) + offset;
  if constexpr (std::is_same_v<To, From>)
    if (stride == 1 || count == 1) return from;
  if (stride == 0) {
    std::fill_n(buffer, count, convert(*from));
  } else {
    for (std::int64_t i = 0; i < count; ++i) buffer[i] = convert(from[i * stride]);
  }
  return buffer;
}

template <class F>
void with_type(ElementType type, F&& f) {
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
    case ElementType::boolean:
      return f.template operator()<std::uint8_t>();
    default:
      LAMINA_CHECK(false, "no lines of {}", name_of(type));
  }
}

template <class T>
T from_float(float v) {
  if constexpr (std::is_same_v<T, f16_t>)
    return to_f16(v);
  else if constexpr (std::is_same_v<T, bf16_t>)
    return to_bf16(v);
  else if constexpr (std::is_integral_v<T>) {
    if (std::isnan(v)) return 0;
    if (v <= static_cast<float>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
    if (v >= static_cast<float>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
    return static_cast<T>(v);
  } else
    return static_cast<T>(v);
}

template <class T>
T from_int(std::int64_t v) {
  if constexpr (std::is_same_v<T, f16_t>)
    return to_f16(static_cast<float>(v));
  else if constexpr (std::is_same_v<T, bf16_t>)
    return to_bf16(static_cast<float>(v));
  else
    return static_cast<T>(v);
}

}  // namespace

bool has_lines(ElementType type) { return bits_of(type) >= 8; }

const float* load_floats(ElementType type, const void* data, std::int64_t offset, std::int64_t stride,
                         std::int64_t count, float* buffer) {
  const float* out = nullptr;
  with_type(type, [&]<class T>() {
    out = loaded<float, T>(data, offset, stride, count, buffer, [](T v) { return real(v); });
  });
  return out;
}

const std::int64_t* load_ints(ElementType type, const void* data, std::int64_t offset, std::int64_t stride,
                              std::int64_t count, std::int64_t* buffer) {
  const std::int64_t* out = nullptr;
  const bool boolean = type == ElementType::boolean;
  with_type(type, [&]<class T>() {
    out = loaded<std::int64_t, T>(data, offset, stride, count, buffer, [=](T v) -> std::int64_t {
      if constexpr (std::is_integral_v<T>)
        return boolean ? v != 0 : static_cast<std::int64_t>(v);
      else
        return static_cast<std::int64_t>(real(v));
    });
  });
  return out;
}

void store_floats(ElementType type, void* data, std::int64_t offset, std::int64_t count,
                  const float* values) {
  const bool boolean = type == ElementType::boolean;
  with_type(type, [&]<class T>() {
    auto* to = static_cast<T*>(data) + offset;
    for (std::int64_t i = 0; i < count; ++i)
      to[i] = from_float<T>(boolean ? static_cast<float>(values[i] != 0) : values[i]);
  });
}

void store_ints(ElementType type, void* data, std::int64_t offset, std::int64_t count,
                const std::int64_t* values) {
  const bool boolean = type == ElementType::boolean;
  with_type(type, [&]<class T>() {
    auto* to = static_cast<T*>(data) + offset;
    for (std::int64_t i = 0; i < count; ++i)
      to[i] = boolean ? from_int<T>(values[i] != 0) : from_int<T>(values[i]);
  });
}

}  // namespace lamina
