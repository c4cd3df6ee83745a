#include "kernels/native/strided.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/parallel.h"
#include "kernels/list.h"

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

namespace {

constexpr std::int64_t kGrainBytes = 32768;  // less than this is not worth a second thread
constexpr std::int64_t kTile = 16;

/// One line of `count` elements.
template <class T>
void line(const T* src, std::int64_t src_stride, T* dst, std::int64_t dst_stride, std::int64_t count) {
  if (src_stride == 1 && dst_stride == 1) {
    std::memcpy(dst, src, static_cast<std::size_t>(count) * sizeof(T));
  } else if (dst_stride == 1) {
    for (std::int64_t i = 0; i < count; ++i) dst[i] = src[i * src_stride];
  } else {
    for (std::int64_t i = 0; i < count; ++i) dst[i * dst_stride] = src[i * src_stride];
  }
}

/// rows x columns where the source is dense along rows and the destination along columns: in square tiles.
template <class T>
void transpose(const T* src, std::int64_t src_column, T* dst, std::int64_t dst_row, std::int64_t rows,
               std::int64_t columns) {
  for (std::int64_t r0 = 0; r0 < rows; r0 += kTile)
    for (std::int64_t c0 = 0; c0 < columns; c0 += kTile) {
      const auto r1 = std::min(rows, r0 + kTile), c1 = std::min(columns, c0 + kTile);
      for (auto r = r0; r < r1; ++r)
        for (auto c = c0; c < c1; ++c) dst[r * dst_row + c] = src[c * src_column + r];
    }
}

template <class T>
void copy_typed(const CopyJob& job, const T* src, T* dst) {
  const std::size_t rank = job.dims.size();
  // Two innermost loops are done at once when one of the source's axes is dense and not the last.
  std::size_t dense = rank;
  if (rank >= 2 && job.dst_strides[rank - 1] == 1 && job.src_strides[rank - 1] != 1)
    for (std::size_t i = 0; i + 1 < rank; ++i)
      if (job.src_strides[i] == 1 && job.dims[i] >= 4) dense = i;
  std::vector<std::size_t> outer;
  for (std::size_t i = 0; i + 1 < rank; ++i)
    if (i != dense) outer.push_back(i);
  std::int64_t lines = 1;
  for (const auto i : outer) lines *= job.dims[i];
  std::int64_t work = job.dims[rank - 1] * (dense < rank ? job.dims[dense] : 1);
  // One long line is cut for the threads.
  if (outer.empty() && dense == rank && work * static_cast<std::int64_t>(sizeof(T)) > 2 * kGrainBytes) {
    parallel_for(work, kGrainBytes / static_cast<std::int64_t>(sizeof(T)),
                 [&](std::int64_t b, std::int64_t e) {
                   line(src + b * job.src_strides[0], job.src_strides[0], dst + b * job.dst_strides[0],
                        job.dst_strides[0], e - b);
                 });
    return;
  }
  const auto grain = std::max<std::int64_t>(
      1, kGrainBytes / std::max<std::int64_t>(1, work * static_cast<std::int64_t>(sizeof(T))));
  parallel_for(lines, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t l = begin; l < end; ++l) {
      std::int64_t rest = l, s = 0, d = 0;
      for (std::size_t k = outer.size(); k-- > 0;) {
        const auto axis = outer[k];
        const auto i = rest % job.dims[axis];
        rest /= job.dims[axis];
        s += i * job.src_strides[axis];
        d += i * job.dst_strides[axis];
      }
      if (dense < rank)
        transpose(src + s, job.src_strides[rank - 1], dst + d, job.dst_strides[dense], job.dims[dense],
                  job.dims[rank - 1]);
      else
        line(src + s, job.src_strides[rank - 1], dst + d, job.dst_strides[rank - 1], job.dims[rank - 1]);
    }
  });
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
