/// How the right operand of a product is packed.
#include <algorithm>
#include <cstring>

#include "base/mapped_file.h"
#include "base/parallel.h"
#include "kernels/native/gemm/product.h"

namespace lamina::gemm {
namespace {

/// Size of the rows that are read together.
constexpr std::int64_t kReadFloats = 256 << 10;
constexpr std::int64_t kPackedLists = 64;

/// Constants may lie at any address.
float read(const float* from) {
  float value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// How all panels are packed, with `count` rows.
WorkPartition packing(const Machine& m, const Panels& panels, std::int64_t count) {
  return partitioned_here(panels.count,
                          move_cost(m, 8.0 * static_cast<double>(count * panels.padded_columns())).us());
}

void pack_panel(const Panels& panels, std::int64_t panel, std::int64_t first, std::int64_t count,
                const float* from, std::int64_t row, std::int64_t column, float* to) {
  const auto width = panels.vectors(panel) * panels.lanes, at = panels.column(panel);
  const auto here = std::min(width, panels.columns - at);
  float* out = to + panels.offset(panel) + first * width;
  const float* in = from + at * column;
  if (row == 1) {
    tiles().pack_transposed(in, column, count, here, out, width);
    for (auto j = round_up(here, panels.lanes); j < width; ++j)
      for (std::int64_t k = 0; k < count; ++k) out[k * width + j] = 0;
    return;
  }
  for (std::int64_t k = 0; k < count; ++k, out += width, in += row) {
    if (column == 1)
      std::memcpy(out, in, sizeof(float) * static_cast<std::size_t>(here));
    else
      for (std::int64_t j = 0; j < here; ++j) out[j] = read(in + j * column);
    std::fill(out + here, out + width, 0.0f);
  }
}

}  // namespace

/// Columns are packed some at a time.
WorkPartition Product::packing_lists() const {
  return partitioned_here(ceil_div(panels.columns, kPackedLists),
                          move_cost(*machine, 8.0 * static_cast<double>(packed_floats())).us());
}

void Product::pack_lists(std::int64_t block, std::int64_t first, std::int64_t count, const float* from,
                         std::int64_t row, std::int64_t column, float* to) const {
  const auto begin = block * kPackedLists, end = std::min(begin + kPackedLists, panels.columns);
  to += begin * panels.depth + first;
  from += begin * column;
  std::int64_t done = 0;
  if (row != 1 && column == 1) {  // whole vectors of k: behind them it would write zeros
    const std::int64_t lanes = tiles().shape.lanes;
    done = count / lanes * lanes;
    tiles().pack_transposed(from, row, end - begin, done, to, panels.depth);
  }
  for (auto j = begin; j < end; ++j, from += column, to += panels.depth)
    if (row == 1)
      std::memcpy(to, from, sizeof(float) * static_cast<std::size_t>(count));
    else
      for (auto k = done; k < count; ++k) to[k] = read(from + k * row);
}

void Product::pack(std::int64_t first, std::int64_t count, const float* from, std::int64_t row,
                   std::int64_t column, float* to) const {
  if (order == Order::lists) {
    parallel_for(packing_lists(), [&](auto begin, auto end) {
      for (auto block = begin; block < end; ++block) pack_lists(block, first, count, from, row, column, to);
    });
    return;
  }
  if (dots) {
    for (std::int64_t j = 0; j < panels.columns; ++j)
      for (std::int64_t k = 0; k < count; ++k)
        to[j * panels.depth + first + k] = read(from + k * row + j * column);
    return;
  }
  parallel_for(packing(*machine, panels, count), [&](auto begin, auto end) {
    for (auto panel = begin; panel < end; ++panel)
      pack_panel(panels, panel, first, count, from, row, column, to);
  });
}

void Product::pack_constant(const std::byte* from, std::int64_t row, std::int64_t column, float* to) const {
  const auto* floats = reinterpret_cast<const float*>(from);
  const auto let_go = [&](std::int64_t begin, std::int64_t count) {
    drop_mapped_pages(floats + begin, static_cast<std::size_t>(count) * sizeof(float));
  };
  if (order == Order::lists && row == 1) {
    parallel_for(packing_lists(), [&](auto begin, auto end) {
      for (auto block = begin; block < end; ++block) {
        pack_lists(block, 0, panels.depth, floats, row, column, to);
        const auto at = block * kPackedLists;
        let_go(at * column, std::min(kPackedLists, panels.columns - at) * column);
      }
    });
    return;
  }
  if (!dots && row == 1) {  // a panel's columns lie together
    parallel_for(packing(*machine, panels, panels.depth), [&](auto begin, auto end) {
      for (auto panel = begin; panel < end; ++panel) {
        pack_panel(panels, panel, 0, panels.depth, floats, row, column, to);
        const auto at = panels.column(panel);
        let_go(at * column, std::min(panels.vectors(panel) * panels.lanes, panels.columns - at) * column);
      }
    });
    return;
  }
  const auto rows = std::max<std::int64_t>(1, kReadFloats / std::max<std::int64_t>(1, row));
  parallel_for(ceil_div(panels.depth, rows), 1, [&](auto begin, auto end) {
    for (auto first = begin * rows; first < std::min(end * rows, panels.depth); first += rows) {
      const auto count = std::min(rows, panels.depth - first);
      pack(first, count, floats + first * row, row, column, to);
      let_go(first * row, count * row);
    }
  });
}

}  // namespace lamina::gemm
