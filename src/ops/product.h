#pragma once
/// Tiles of matrix products for the references of convolution, MatMul and attention. Sums are doubles, or
/// 64-bit integers that wrap.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/cancellation.h"
#include "base/work_partition.h"
#include "ops/eval.h"

namespace lamina {

/// Largest tile that one call should get.
inline constexpr std::int64_t kTileRows = 128, kTileCols = 64, kTileDepth = 256;

/// Elements of an input as S: a view when it is of that type already, else converted.
template <class S>
class Elements {
 public:
  Elements(const EvalContext& c, std::size_t i) {
    if (c.in(i).element_type() == element_type_of<S>) {
      data_ = c.in(i).data<S>().data();
      return;
    }
    owned_ = c.numbers<S>(i);
    data_ = owned_.data();
  }
  explicit Elements(std::vector<S> values) : owned_(std::move(values)), data_(owned_.data()) {}
  Elements(const Elements&) = delete;
  Elements& operator=(const Elements&) = delete;
  const S* data() const { return data_; }
  S operator[](std::int64_t i) const { return data_[i]; }

 private:
  std::vector<S> owned_;
  const S* data_ = nullptr;
};

/// What sums of products of S are kept in.
template <class S>
struct Accumulator {
  using Type = double;
};
template <>
struct Accumulator<std::int64_t> {
  using Type = std::uint64_t;
};
template <class S>
using Sum = typename Accumulator<S>::Type;

/// A block of an operand, in strips of four along its long side: what lies together is read together.
template <class T>
struct Strips {
  T* data;
  std::int64_t depth;
  T& at(std::int64_t k, std::int64_t i) const { return data[(i / 4) * depth * 4 + k * 4 + i % 4]; }
};

namespace detail {

/// sum[4][4] (rows `stride` apart) += products of two strips.
template <class T>
void strip_product(const T* __restrict a, const T* __restrict b, std::int64_t depth, T* __restrict sum,
                   std::int64_t stride) {
  typedef T Pair __attribute__((vector_size(2 * sizeof(T))));
  Pair acc[4][2] = {};
  for (std::int64_t k = 0; k < depth; ++k) {
    Pair b0, b1;
    std::memcpy(&b0, b + 4 * k, sizeof b0);
    std::memcpy(&b1, b + 4 * k + 2, sizeof b1);
    for (int r = 0; r < 4; ++r) {
      const Pair s = {a[4 * k + r], a[4 * k + r]};
      acc[r][0] += s * b0;
      acc[r][1] += s * b1;
    }
  }
  for (int r = 0; r < 4; ++r)
    for (int j = 0; j < 4; ++j) sum[r * stride + j] += acc[r][j / 2][j % 2];
}

}  // namespace detail

/// The product of a tile: rows x cols sums over depth, returned row by row with `stride` between rows.
/// fill_a(k0, k1, strips) writes a[m, k] to strips.at(k - k0, m), fill_b(k0, k1, strips) b[k, n] to
/// strips.at(k - k0, n). Has stop points.
template <class T>
struct TileSums {
  std::vector<T> values;
  std::int64_t stride = 0;
  T at(std::int64_t row, std::int64_t col) const {
    return values[static_cast<std::size_t>(row * stride + col)];
  }
};
template <class T, class FillA, class FillB>
TileSums<T> tile_product(std::int64_t rows, std::int64_t cols, std::int64_t depth, const FillA& fill_a,
                         const FillB& fill_b) {
  const std::int64_t row_strips = (rows + 3) / 4, col_strips = (cols + 3) / 4;
  const std::int64_t most = std::min(depth, kTileDepth);
  TileSums<T> sums{std::vector<T>(static_cast<std::size_t>(16 * row_strips * col_strips)), 4 * col_strips};
  std::vector<T> a(static_cast<std::size_t>(4 * row_strips * most)),
      b(static_cast<std::size_t>(4 * col_strips * most));
  StopPoints points;
  for (std::int64_t k0 = 0; k0 < depth; k0 += most) {
    const std::int64_t k1 = std::min(depth, k0 + most), size = k1 - k0;
    if (size != most) {  // the strips get shorter: their unused lanes move
      std::fill(a.begin(), a.end(), T(0));
      std::fill(b.begin(), b.end(), T(0));
    }
    fill_a(k0, k1, Strips<T>{a.data(), size});
    fill_b(k0, k1, Strips<T>{b.data(), size});
    for (std::int64_t j = 0; j < col_strips; ++j)
      for (std::int64_t i = 0; i < row_strips; ++i)
        detail::strip_product(a.data() + i * 4 * size, b.data() + j * 4 * size, size,
                              sums.values.data() + i * 4 * sums.stride + j * 4, sums.stride);
    points(rows * cols * size);
  }
  return sums;
}

/// Cuts `count` into `number` equal pieces of at most `most`.
struct Pieces {
  Pieces(std::int64_t total, std::int64_t most)
      : count(total),
        number(std::max<std::int64_t>(1, ceil_div(total, most))),
        size(ceil_div(total, number)) {}
  std::int64_t begin(std::int64_t i) const { return std::min(count, i * size); }
  std::int64_t end(std::int64_t i) const { return std::min(count, (i + 1) * size); }
  std::int64_t count, number, size;
};

}  // namespace lamina
