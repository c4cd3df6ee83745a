#include "kernels/native/pooling/run.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/cancellation.h"
#include "base/parallel.h"
#include "base/work_partition.h"

namespace lamina::pooling {
namespace {

// Rows of outputs.

constexpr std::int64_t kPiece = 2048;  // elements that stages get at once, where rows are shorter

/// What one thread does of the rows of all planes.
class RowRun {
 public:
  RowRun(const Windows& code, const RunArgs& args) : c_(code), args_(args) {
    const bool last = c_.x.layout == Layout::channels_last;
    r_.channels = last ? c_.channels : 1;
    planes_ = last ? c_.batch : c_.batch * c_.channels;
    rows_ = c_.out[0] * c_.out[1];
    row_ = c_.out[2] * r_.channels;
    picture_ = c_.in[0] * c_.in[1] * c_.in[2] * r_.channels;
    r_.x = c_.ranges[2].data();
    r_.count = c_.out[2];
    r_.y_stride = c_.in[2] * r_.channels;
    r_.z_stride = c_.in[1] * r_.y_stride;
    r_.exclude_pad = c_.exclude_pad;
    r_.whole_begin = c_.whole_begin, r_.whole_end = c_.whole_end;
    r_.stride = c_.stride, r_.pad = c_.pad;
  }

  void operator()(std::int64_t begin, std::int64_t end) {
    if (c_.stages && !c_.stages->empty()) {
      StageRun stages(*c_.stages, args_.in);
      if (c_.made.bytes(1) == c_.y.bytes(1))
        in_place(begin, end, stages);
      else
        through_tile(begin, end, stages);
      return;
    }
    for (auto i = begin; i < end; ++i) compute(i, out(i));
  }

 private:
  std::byte* out(std::int64_t row, std::int64_t element = 0) const {
    return static_cast<std::byte*>(args_.out[0]) + c_.y.bytes(row * row_ + element);
  }

  void enter(std::int64_t i) {
    r_.z = c_.ranges[0][static_cast<std::size_t>(i % rows_ / c_.out[1])];
    r_.y = c_.ranges[1][static_cast<std::size_t>(i % c_.out[1])];
    r_.readable = (planes_ - i / rows_) * picture_;
    r_.in = static_cast<const std::byte*>(args_.in[0]) + c_.x.bytes(i / rows_ * picture_);
  }

  void compute(std::int64_t i, void* to) {
    enter(i);
    r_.out = to;
    find(r_);
  }

  /// In pieces, between which the run may be stopped.
  void find(const PoolRow& row) const {
    for (std::int64_t begin = 0; begin < row.count; begin += c_.piece) {
      if (begin > 0) stop_point();
      c_.rows(part_of(row, begin, std::min(c_.piece, row.count - begin)));
    }
  }

  PoolRow part_of(const PoolRow& row, std::int64_t begin, std::int64_t count) const {
    PoolRow r = row;
    r.out = static_cast<std::byte*>(row.out) + c_.made.bytes(begin * row.channels);
    r.x += begin;
    r.count = count;
    r.whole_begin = std::clamp<std::int64_t>(row.whole_begin - begin, 0, count);
    r.whole_end = std::clamp<std::int64_t>(row.whole_end - begin, 0, count);
    r.pad = row.pad - begin * row.stride;
    return r;
  }

  void in_place(std::int64_t begin, std::int64_t end, StageRun& stages) {
    const auto batch = std::max<std::int64_t>(1, kPiece / row_);
    for (; begin < end; begin += batch) {
      const auto until = std::min(end, begin + batch);
      for (auto i = begin; i < until; ++i) compute(i, out(i));
      stages(out(begin), out(begin), begin * row_, (until - begin) * row_);
    }
  }

  void through_tile(std::int64_t begin, std::int64_t end, StageRun& stages) {
    alignas(64) std::byte tile[kTile * sizeof(float)];
    const auto batch = kTile / row_;
    if (batch == 0) {
      for (; begin < end; ++begin) long_row(begin, tile, stages);
      return;
    }
    for (; begin < end; begin += batch) {
      const auto until = std::min(end, begin + batch);
      for (auto i = begin; i < until; ++i) compute(i, tile + c_.made.bytes((i - begin) * row_));
      stages(tile, out(begin), begin * row_, (until - begin) * row_);
    }
  }

  /// A row that is longer than a tile, piece by piece.
  void long_row(std::int64_t row, std::byte* tile, StageRun& stages) {
    enter(row);
    const auto most = kTile / r_.channels;
    for (std::int64_t begin = 0; begin < r_.count; begin += most) {
      auto r = part_of(r_, begin, std::min(most, r_.count - begin));
      r.out = tile;
      find(r);
      const auto at = begin * r.channels;
      stages(tile, out(row, at), row * row_ + at, r.count * r.channels);
    }
  }

  const Windows& c_;
  const RunArgs& args_;
  std::int64_t planes_ = 1, rows_ = 1, row_ = 1, picture_ = 1;
  PoolRow r_;
};

// Element by element: other types, and indices.

template <class T>
bool is_nan(T x) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(x);
  return false;
}

template <class T>
void run_planes(const Windows& c, const RunArgs& args) {
  const auto plane = c.in[0] * c.in[1] * c.in[2], rows = c.out[0] * c.out[1];
  const auto find = [&](const T* in, const PoolRange& z, const PoolRange& y, const PoolRange& x, T& best) {
    std::int64_t where = -1;
    best = std::numeric_limits<T>::lowest();
    for (std::int64_t k = 0; k < z.count; ++k)
      for (std::int64_t j = 0; j < y.count; ++j) {
        auto at = ((z.begin + k * z.step) * c.in[1] + y.begin + j * y.step) * c.in[2] + x.begin;
        for (std::int64_t i = 0; i < x.count; ++i, at += x.step)
          if (where < 0 || in[at] > best || (is_nan(in[at]) && !is_nan(best))) best = in[at], where = at;
      }
    return std::max<std::int64_t>(where, 0);
  };
  const auto index_of = [&](std::int64_t p, std::int64_t at) {
    if (c.column_major) {
      const auto z = at / (c.in[1] * c.in[2]), y = at / c.in[2] % c.in[1], x = at % c.in[2];
      at = (x * c.in[1] + y) * c.in[0] + z;
    }
    return (p * plane + at) % c.index_range;
  };
  parallel_for(c.all, [&](std::int64_t begin, std::int64_t end) {
    StopPoints points;
    for (auto row = begin; row < end; ++row) {
      const auto p = row / rows;
      const auto& z = c.ranges[0][static_cast<std::size_t>(row % rows / c.out[1])];
      const auto& y = c.ranges[1][static_cast<std::size_t>(row % c.out[1])];
      const auto* in = static_cast<const T*>(args.in[0]) + p * plane;
      auto o = row * c.out[2];
      for (const auto& x : c.ranges[2]) {
        T best;
        const auto at = index_of(p, find(in, z, y, x, best));
        if (args.out[0]) static_cast<T*>(args.out[0])[o] = best;
        if (c.with_indices && args.out[1]) {
          if (c.wide_indices)
            static_cast<std::int64_t*>(args.out[1])[o] = at;
          else
            static_cast<std::int32_t*>(args.out[1])[o] = static_cast<std::int32_t>(at);
        }
        ++o;
        points(std::int64_t{z.count} * y.count * x.count + 1);
      }
    }
  });
}

}  // namespace

double work_of(const Windows& c) {
  double positions = 1;
  for (const auto& axis : c.ranges) {
    double sum = 0;
    for (const auto& r : axis) sum += r.count;
    positions *= sum;
  }
  return positions * static_cast<double>(c.batch * c.channels);
}

std::int64_t outputs_of_piece(const Windows& c, Layout layout) {
  constexpr double kWork = 1 << 24;       // a few milliseconds
  constexpr std::int64_t kTogether = 64;  // what vectors of outputs need
  const auto channels = layout == Layout::channels_last ? c.channels : 1;
  const auto windows = static_cast<double>(c.batch * c.channels * c.out[0] * c.out[1] * c.out[2]);
  const auto taps = windows > 0 ? work_of(c) / windows : 0;  // on average
  const auto most = kWork / std::max(1.0, taps * static_cast<double>(channels));
  if (most >= static_cast<double>(c.out[2])) return std::max<std::int64_t>(1, c.out[2]);
  return round_up(std::max<std::int64_t>(1, static_cast<std::int64_t>(most)), channels == 1 ? kTogether : 4);
}

void run_rows(const Windows& c, const RunArgs& args) {
  const RowRun all(c, args);
  parallel_for(c.all, [&](std::int64_t begin, std::int64_t end) {
    RowRun mine = all;
    mine(begin, end);
  });
}

Planes planes_of(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return run_planes<float>;
    case ElementType::f64:
      return run_planes<double>;
    case ElementType::i64:
      return run_planes<std::int64_t>;
    case ElementType::i32:
      return run_planes<std::int32_t>;
    case ElementType::i16:
      return run_planes<std::int16_t>;
    case ElementType::i8:
      return run_planes<std::int8_t>;
    case ElementType::u8:
      return run_planes<std::uint8_t>;
    default:
      return nullptr;
  }
}

}  // namespace lamina::pooling
