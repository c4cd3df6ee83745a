#include "kernels/native/move/strided.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "base/limits.h"
#include "base/machine.h"
#include "base/parallel.h"
#include "base/work_partition.h"
#include "kernels/cost.h"
#include "kernels/family.h"
#include "kernels/list.h"
#include "kernels/native/move/loops.h"

namespace lamina {

std::size_t whole_bytes(ElementType type) {
  const int bits = bits_of(type);
  return bits % 8 == 0 ? static_cast<std::size_t>(bits / 8) : 0;
}

CopyJob simplified(CopyJob job) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < job.dims.size(); ++i)
    if (job.dims[i] != 1) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return job.dst_strides[a] > job.dst_strides[b]; });
  CopyJob out = job;
  out.dims.clear(), out.src_strides.clear(), out.dst_strides.clear();
  for (const auto i : order) {
    if (!out.dims.empty() && out.dst_strides.back() == job.dst_strides[i] * job.dims[i] &&
        out.src_strides.back() == job.src_strides[i] * job.dims[i]) {
      out.dims.back() *= job.dims[i];
      out.src_strides.back() = job.src_strides[i];
      out.dst_strides.back() = job.dst_strides[i];
    } else {
      out.dims.push_back(job.dims[i]);
      out.src_strides.push_back(job.src_strides[i]);
      out.dst_strides.push_back(job.dst_strides[i]);
    }
  }
  if (out.dims.empty()) out.dims = {1}, out.src_strides = {1}, out.dst_strides = {1};
  return out;
}

WorkPartition moves(std::int64_t units, std::int64_t unit_bytes) {
  static const double byte_us = 2 * unit_costs(this_machine(), Family::copy).byte;
  return partitioned_here(units, byte_us * static_cast<double>(units * unit_bytes));
}

namespace {

constexpr std::int64_t kPieceBytes = 65536;  // of lines that are taken together
constexpr std::int64_t kTile = 16;
constexpr std::int64_t kRows = 64;                       // of a transpose, taken by one piece of work
constexpr std::size_t kMostAxes = Limits::kElementBits;  // of 2 elements or more

/// A short copy without a call.
inline void copy_line(std::byte* dst, const std::byte* src, std::int64_t bytes) {
  if (bytes > 64) {
    std::memcpy(dst, src, static_cast<std::size_t>(bytes));
    return;
  }
  std::int64_t i = 0;
  for (; i + 16 <= bytes; i += 16) std::memcpy(dst + i, src + i, 16);
  if (i + 8 <= bytes) std::memcpy(dst + i, src + i, 8), i += 8;
  if (i + 4 <= bytes) std::memcpy(dst + i, src + i, 4), i += 4;
  for (; i < bytes; ++i) dst[i] = src[i];
}

template <class T>
void fill_line(T value, T* dst, std::int64_t count) {
  if constexpr (sizeof(T) == 4) {
    if (count >= 16) return copy_loops().fill(value, dst, count);
  }
  std::fill_n(dst, count, value);
}

/// Constants of a mapped file may lie at any address.
template <class T>
T read(const T* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// One line of `count` elements.
template <class T>
void line(const T* src, std::int64_t src_stride, T* dst, std::int64_t dst_stride, std::int64_t count) {
  if (src_stride == 1 && dst_stride == 1) {
    copy_line(reinterpret_cast<std::byte*>(dst), reinterpret_cast<const std::byte*>(src),
              count * static_cast<std::int64_t>(sizeof(T)));
  } else if (dst_stride == 1 && src_stride == 0) {
    fill_line(read(src), dst, count);
  } else if (dst_stride == 1) {
    for (std::int64_t i = 0; i < count; ++i) dst[i] = read(src + i * src_stride);
  } else {
    for (std::int64_t i = 0; i < count; ++i) dst[i * dst_stride] = read(src + i * src_stride);
  }
}

/// rows x columns where the source is dense along rows and the destination along columns.
template <class T>
void transpose(const T* src, std::int64_t src_column, T* dst, std::int64_t dst_row, std::int64_t rows,
               std::int64_t columns) {
  const auto& loops = copy_loops();
  if constexpr (sizeof(T) == 1) return loops.transpose_bytes(src, src_column, dst, dst_row, rows, columns);
  if constexpr (sizeof(T) == 2) return loops.transpose_halves(src, src_column, dst, dst_row, rows, columns);
  if constexpr (sizeof(T) == 4) return loops.transpose_words(src, src_column, dst, dst_row, rows, columns);
  for (std::int64_t r0 = 0; r0 < rows; r0 += kTile)
    for (std::int64_t c0 = 0; c0 < columns; c0 += kTile) {
      const auto r1 = std::min(rows, r0 + kTile), c1 = std::min(columns, c0 + kTile);
      for (auto r = r0; r < r1; ++r)
        for (auto c = c0; c < c1; ++c) dst[r * dst_row + c] = read(src + c * src_column + r);
    }
}

/// A position in the outer axes, with its offsets.
class Walk {
 public:
  struct Axis {
    std::int64_t size, src, dst;
  };

  void add(std::int64_t size, std::int64_t src, std::int64_t dst) { axes_[rank_++] = {size, src, dst}; }
  std::int64_t positions() const {
    std::int64_t n = 1;
    for (std::size_t a = 0; a < rank_; ++a) n *= axes_[a].size;
    return n;
  }
  void start(std::int64_t position) {
    src = dst = 0;
    for (std::size_t a = rank_; a-- > 0; position /= axes_[a].size) {
      at_[a] = position % axes_[a].size;
      src += at_[a] * axes_[a].src;
      dst += at_[a] * axes_[a].dst;
    }
  }
  void next() {
    for (std::size_t a = rank_; a-- > 0;) {
      src += axes_[a].src;
      dst += axes_[a].dst;
      if (++at_[a] < axes_[a].size) return;
      src -= axes_[a].src * axes_[a].size;
      dst -= axes_[a].dst * axes_[a].size;
      at_[a] = 0;
    }
  }

  std::int64_t src = 0, dst = 0;

 private:
  std::size_t rank_ = 0;
  std::array<Axis, kMostAxes> axes_{};
  std::array<std::int64_t, kMostAxes> at_{};
};

/// The axis along which the source is dense, when that is not the last one and the last can be a line of the
/// destination: the two are done at once.
std::size_t dense_axis(const CopyJob& job) {
  const std::size_t rank = job.dims.size();
  if (rank >= 2 && job.dst_strides[rank - 1] == 1 && job.src_strides[rank - 1] > 1)
    for (std::size_t i = 0; i + 1 < rank; ++i)
      if (job.src_strides[i] == 1 && job.dims[i] >= 2) return i;
  return rank;
}

template <class T>
void copy_transposed(const CopyJob& job, std::size_t dense, const T* src, T* dst) {
  const std::size_t last = job.dims.size() - 1;
  const auto rows = job.dims[dense], columns = job.dims[last];
  const auto src_column = job.src_strides[last], dst_row = job.dst_strides[dense];
  // Few rows or columns that lie side by side are one piece, large matrices are cut.
  const bool cut = rows > kRows && !(dst_row == columns && columns <= 4);
  const auto pieces = cut ? ceil_div(rows, kRows) : 1, size = cut ? kRows : rows;
  Walk walk;
  for (std::size_t i = 0; i < last; ++i)
    if (i != dense) walk.add(job.dims[i], job.src_strides[i], job.dst_strides[i]);
  walk.add(pieces, size, size * dst_row);
  parallel_for(moves(walk.positions(), size * columns * static_cast<std::int64_t>(sizeof(T))),
               [&](std::int64_t begin, std::int64_t end) {
                 Walk at = walk;
                 at.start(begin);
                 for (auto u = begin; u < end; ++u, at.next())
                   transpose(src + at.src, src_column, dst + at.dst, dst_row,
                             std::min(size, rows - u % pieces * size), columns);
               });
}

/// Lines of kCount neighbouring elements.
template <int kCount, class T>
void lines_of(const T* src, std::int64_t src_row, T* dst, std::int64_t dst_row, std::int64_t rows) {
  for (std::int64_t r = 0; r < rows; ++r, src += src_row, dst += dst_row)
    for (std::int64_t i = 0; i < kCount; ++i) dst[i] = read(src + i);
}

/// `rows` lines along the last axis of a job.
template <class T>
void several_lines(const CopyJob& job, const T* src, T* dst, std::int64_t rows) {
  const std::size_t last = job.dims.size() - 1;
  const auto count = job.dims[last], src_row = job.src_strides[last - 1], dst_row = job.dst_strides[last - 1];
  if (job.src_strides[last] == 1 && job.dst_strides[last] == 1) {
    if (count == 1) return lines_of<1>(src, src_row, dst, dst_row, rows);
    if (count == 2) return lines_of<2>(src, src_row, dst, dst_row, rows);
    if (count == 3) return lines_of<3>(src, src_row, dst, dst_row, rows);
    if (count == 4) return lines_of<4>(src, src_row, dst, dst_row, rows);
  }
  for (std::int64_t r = 0; r < rows; ++r)
    line(src + r * src_row, job.src_strides[last], dst + r * dst_row, job.dst_strides[last], count);
}

/// Line by line; those of the last axis but one are taken together.
template <class T>
void copy_lines(const CopyJob& job, const T* src, T* dst) {
  const std::size_t last = job.dims.size() - 1;
  const auto count = job.dims[last];
  const auto bytes = static_cast<std::int64_t>(sizeof(T));
  if (last == 0) {  // one line is cut for the threads
    parallel_for(moves(count, bytes), [&](std::int64_t b, std::int64_t e) {
      line(src + b * job.src_strides[0], job.src_strides[0], dst + b * job.dst_strides[0], job.dst_strides[0],
           e - b);
    });
    return;
  }
  const auto rows = job.dims[last - 1];
  const auto size = std::clamp<std::int64_t>(kPieceBytes / (count * bytes), 1, rows);
  const auto pieces = ceil_div(rows, size);
  Walk walk;
  for (std::size_t i = 0; i + 1 < last; ++i) walk.add(job.dims[i], job.src_strides[i], job.dst_strides[i]);
  walk.add(pieces, size * job.src_strides[last - 1], size * job.dst_strides[last - 1]);
  parallel_for(moves(walk.positions(), size * count * bytes), [&](std::int64_t begin, std::int64_t end) {
    Walk at = walk;
    at.start(begin);
    for (auto u = begin; u < end; ++u, at.next())
      several_lines(job, src + at.src, dst + at.dst, std::min(size, rows - u % pieces * size));
  });
}

template <class T>
void copy_typed(const CopyJob& job, const T* src, T* dst) {
  LAMINA_CHECK(job.dims.size() <= kMostAxes, "a copy of {} axes", job.dims.size());
  const auto dense = dense_axis(job);
  if (dense < job.dims.size())
    copy_transposed(job, dense, src, dst);
  else
    copy_lines(job, src, dst);
}

}  // namespace

void run_copy(const CopyJob& job, std::size_t element_bytes, const std::byte* src, std::byte* dst) {
  if (std::any_of(job.dims.begin(), job.dims.end(), [](auto d) { return d == 0; })) return;
  const auto run = [&]<class T>() {
    copy_typed(job, reinterpret_cast<const T*>(src) + job.src_offset,
               reinterpret_cast<T*>(dst) + job.dst_offset);
  };
  switch (element_bytes) {
    case 1:
      return run.template operator()<std::uint8_t>();
    case 2:
      return run.template operator()<std::uint16_t>();
    case 4:
      return run.template operator()<std::uint32_t>();
    case 8:
      return run.template operator()<std::uint64_t>();
    default:
      LAMINA_CHECK(false, "copy of elements of {} bytes", element_bytes);
  }
}

std::unique_ptr<Executable> make_strided_reorder(ElementType type, const Dims& shape, Layout from,
                                                 Layout to) {
  CopyJob job;
  job.dims = shape;
  job.src_strides = strides_of(shape, from);
  job.dst_strides = strides_of(shape, to);
  job = simplified(job);
  return executable([job, bytes = whole_bytes(type)](const RunArgs& args) {
    run_copy(job, bytes, static_cast<const std::byte*>(args.in[0]), static_cast<std::byte*>(args.out[0]));
  });
}

}  // namespace lamina
