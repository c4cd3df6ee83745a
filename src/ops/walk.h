#pragma once
/// Walking over tensors, for the reference operators: positions and strides in elements, row-major.
#include <algorithm>
#include <array>
#include <span>

#include "base/cancellation.h"
#include "base/parallel.h"
#include "ops/eval.h"

namespace lamina {

/// Bytes of one element; throws Error for packed types (packed.h moves them).
std::size_t element_bytes(ElementType type);
/// Elements of the dimensions [from, to).
std::int64_t volume(std::span<const std::int64_t> dims, std::size_t from, std::size_t to);
inline std::int64_t volume(std::span<const std::int64_t> dims) { return volume(dims, 0, dims.size()); }

Ints dense_strides(const Dims& dims);
/// Strides that read `from` at every index of `to` (numpy broadcasting, which must fit): 0 where it repeats.
Ints broadcast_strides(const Dims& from, const Dims& to);

/// Where each position of `dims` lies, in row-major order, when its axes have these strides.
Ints offsets_of(const Dims& dims, const Ints& strides);
/// Offsets of the positions along the selected axes (the others at 0) in a dense tensor.
Ints offsets_along(const Dims& shape, const std::vector<bool>& selected);
/// For every position of `to` the one in `from` that broadcasts to it.
inline Ints broadcast_offsets(const Dims& from, const Dims& to) {
  return offsets_of(to, broadcast_strides(from, to));
}
/// The values of a tensor of shape `from`, broadcast to `to`.
std::vector<double> broadcast_values(const std::vector<double>& values, const Dims& from, const Dims& to);

/// An index into [0, size); negative ones count from the end.
std::int64_t checked_index(std::int64_t index, std::int64_t size);
/// Advances a position; false after the last one.
bool next_position(Dims& position, const Dims& dims);

/// Writes `dims` elements densely to `out`, reading in + offset + sum of index * stride (all in elements).
void copy_strided(std::byte* out, const Dims& dims, const std::byte* in, std::int64_t offset,
                  const Ints& strides, std::size_t bytes);
/// Transposes x seen under `dims` so that result axis i is axis order[i].
Tensor transposed(const Tensor& x, const Dims& dims, const std::vector<std::size_t>& order,
                  const Dims& out_dims);

/// Calls body(first, offsets, count) for rows along the last axis of dims, or parts of long ones, in
/// parallel: `first` is the first element, offsets[k] where operand k starts; step along a row with
/// strides[k].back(). Scalars are one row of one. Has stop points.
template <std::size_t N, class F>
void for_each_row(Dims dims, std::array<Ints, N> strides, const F& body) {
  if (dims.empty()) {
    dims = {1};
    for (auto& s : strides) s = {0};
  }
  const std::size_t outer = dims.size() - 1;
  const std::int64_t row = dims.back();
  std::int64_t rows = row == 0 ? 0 : 1;
  for (std::size_t i = 0; i < outer; ++i) rows *= dims[i];
  const auto body_in_parts = [&](std::int64_t first, const std::array<std::int64_t, N>& offsets) {
    constexpr std::int64_t kLong = 1 << 18;
    if (row <= kLong) return body(first, offsets, row);
    for (std::int64_t at = 0; at < row; at += kLong) {
      auto here = offsets;
      for (std::size_t k = 0; k < N; ++k) here[k] += at * strides[k].back();
      stop_point();
      body(first + at, here, std::min(kLong, row - at));
    }
  };
  parallel_for(rows, std::max<std::int64_t>(1, 8192 / std::max<std::int64_t>(row, 1)),
               [&](std::int64_t begin, std::int64_t end) {
                 Ints index(outer);
                 std::array<std::int64_t, N> offsets{};
                 std::int64_t rest = begin;
                 for (std::size_t i = outer; i-- > 0; rest /= dims[i]) {
                   index[i] = rest % dims[i];
                   for (std::size_t k = 0; k < N; ++k) offsets[k] += index[i] * strides[k][i];
                 }
                 for (std::int64_t r = begin; r < end; ++r) {
                   body_in_parts(r * row, offsets);
                   for (std::size_t i = outer; i-- > 0;) {
                     const bool carry = ++index[i] == dims[i];
                     for (std::size_t k = 0; k < N; ++k)
                       offsets[k] += carry ? -(dims[i] - 1) * strides[k][i] : strides[k][i];
                     if (!carry) break;
                     index[i] = 0;
                   }
                 }
               });
}

}  // namespace lamina
