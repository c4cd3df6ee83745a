#include "ops/walk.h"

#include <algorithm>
#include <cstring>

#include "base/cancellation.h"

namespace lamina {

std::size_t element_bytes(ElementType type) {
  if (bits_of(type) < 8) fail(ErrorCode::unsupported, "element type {} is not supported here", name_of(type));
  return static_cast<std::size_t>(bits_of(type)) / 8;
}

std::int64_t volume(std::span<const std::int64_t> dims, std::size_t from, std::size_t to) {
  std::uint64_t n = 1;  // may wrap where another dimension is 0, so that nothing is done with it
  for (auto i = from; i < to; ++i) n *= static_cast<std::uint64_t>(dims[i]);
  return static_cast<std::int64_t>(n);
}

Ints dense_strides(const Dims& dims) {
  element_count(dims);  // throws where the products below would overflow
  Ints strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;)
    strides[i - 1] = strides[i] * std::max<std::int64_t>(dims[i], 1);
  return strides;
}

Ints broadcast_strides(const Dims& from, const Dims& to) {
  LAMINA_CHECK(from.size() <= to.size(), "{} broadcast to {}", to_string(from), to_string(to));
  const auto dense = dense_strides(from);
  Ints strides(to.size(), 0);
  const auto skipped = to.size() - from.size();
  for (std::size_t i = 0; i < from.size(); ++i) {
    LAMINA_CHECK(from[i] == 1 || from[i] == to[skipped + i], "{} broadcast to {}", to_string(from),
                 to_string(to));
    if (from[i] != 1) strides[skipped + i] = dense[i];
  }
  return strides;
}

Ints offsets_of(const Dims& dims, const Ints& strides) {
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return {};  // however many the others make
  Ints offsets{0};
  StopPoints points;
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    Ints longer;
    longer.reserve(offsets.size() * static_cast<std::size_t>(dims[axis]));
    for (const auto o : offsets)
      for (std::int64_t i = 0; i < dims[axis]; points(), ++i) longer.push_back(o + i * strides[axis]);
    offsets = std::move(longer);
  }
  return offsets;
}

Ints offsets_along(const Dims& shape, const std::vector<bool>& selected) {
  const auto dense = dense_strides(shape);
  Dims dims;
  Ints strides;
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    if (selected[axis]) {
      dims.push_back(shape[axis]);
      strides.push_back(dense[axis]);
    }
  return offsets_of(dims, strides);
}

std::vector<double> broadcast_values(const std::vector<double>& values, const Dims& from, const Dims& to) {
  if (from == to) return values;
  const auto offsets = broadcast_offsets(from, to);
  std::vector<double> out(offsets.size());
  StopPoints points;
  for (std::size_t i = 0; i < out.size(); points(), ++i)
    out[i] = values[static_cast<std::size_t>(offsets[i])];
  return out;
}

std::int64_t checked_index(std::int64_t index, std::int64_t size) {
  if (index < -size || index >= size)
    fail(ErrorCode::bad_input, "index {} is outside of an axis with {} elements", index, size);
  return index < 0 ? index + size : index;
}

bool next_position(Dims& position, const Dims& dims) {
  for (auto i = dims.size(); i-- > 0;) {
    if (++position[i] < dims[i]) return true;
    position[i] = 0;
  }
  return false;
}

namespace {

template <class T>
void copy_row(std::byte* out, const std::byte* in, std::int64_t count, std::int64_t stride) {
  for (std::int64_t i = 0; i < count; ++i)
    std::memcpy(out + i * std::int64_t{sizeof(T)}, in + i * stride * std::int64_t{sizeof(T)}, sizeof(T));
}

}  // namespace

void copy_strided(std::byte* out, const Dims& dims, const std::byte* in, std::int64_t offset,
                  const Ints& strides, std::size_t bytes) {
  const auto size = static_cast<std::int64_t>(bytes);
  const std::int64_t last = strides.empty() ? 1 : strides.back();
  in += offset * size;
  for_each_row<1>(dims, {strides}, [&](std::int64_t first, const auto& offsets, std::int64_t count) {
    std::byte* to = out + first * size;
    const std::byte* from = in + offsets[0] * size;
    if (last == 1) {
      std::memcpy(to, from, static_cast<std::size_t>(count * size));
    } else if (bytes == 8) {
      copy_row<std::uint64_t>(to, from, count, last);
    } else if (bytes == 4) {
      copy_row<std::uint32_t>(to, from, count, last);
    } else if (bytes == 2) {
      copy_row<std::uint16_t>(to, from, count, last);
    } else {
      copy_row<std::uint8_t>(to, from, count, last);
    }
  });
}

Tensor transposed(const Tensor& x, const Dims& dims, const std::vector<std::size_t>& order,
                  const Dims& out_dims) {
  const auto dense = dense_strides(dims);
  Dims walked;
  Ints strides;
  for (auto axis : order) {
    walked.push_back(dims[axis]);
    strides.push_back(dense[axis]);
  }
  Tensor out(x.element_type(), out_dims);
  LAMINA_CHECK(element_count(walked) == x.size() && out.size() == x.size(), "transposing {} as {}",
               to_string(x.shape()), to_string(dims));
  if (out.size() != 0) copy_strided(out.raw(), walked, x.raw(), 0, strides, element_bytes(x.element_type()));
  return out;
}

}  // namespace lamina
