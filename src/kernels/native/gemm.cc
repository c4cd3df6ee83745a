/// What a product consists of, and how it is divided; gemm_run.cc runs it.
#include "kernels/native/gemm.h"

#include <algorithm>
#include <cstring>

#include "base/cpu.h"
#include "kernels/native/gemm_dots.h"

namespace lamina::gemm {
namespace {

/// What one task reads of B over and over: a part of L2.
constexpr std::int64_t kBlockBytes = 512 << 10;
/// k of the rows of a strip and of a panel that are read together.
constexpr std::int64_t kDepthBlock = 2048;
/// A's part of a strip, and C's where an epilogue follows: a part of L1.
constexpr std::int64_t kStripBytes = 24 << 10;
constexpr double kTaskMicroseconds = 40, kLeastMicroseconds = 20;
/// Of B when it is read once.
constexpr double kBytesPerMicrosecond = 20000;

/// Multiply-adds per microsecond of one thread, roughly.
double rate() {
  switch (effective_isa()) {
    case Isa::avx512:
      return 80000;
    case Isa::avx2:
      return 45000;
    case Isa::sse41:
      break;
  }
  return 14000;
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Cycles per row of A, roughly: broadcasts against vectors along k, whose lanes are summed at the end.
bool better_as_dots(std::int64_t depth, std::int64_t columns, std::int64_t run) {
  if (columns > dots().columns || columns == 0 || depth == 0) return false;
  const std::int64_t lanes = tiles().lanes;
  const auto broadcast = static_cast<double>(depth * ceil_div(columns, lanes)) * 0.6;
  const auto vectors = static_cast<double>(depth / run * ceil_div(run, lanes) * columns) * 0.6;
  return vectors + 4.0 * static_cast<double>(columns) < broadcast;
}

void pack_panels(const Panels& panels, std::int64_t first, std::int64_t count, const float* from,
                 std::int64_t row, std::int64_t column, float* to) {
  for (std::int64_t panel = 0; panel < panels.count; ++panel) {
    const auto width = panels.vectors(panel) * panels.lanes, at = panels.column(panel);
    const auto here = std::min(width, panels.columns - at);
    float* out = to + panels.offset(panel) + first * width;
    const float* in = from + at * column;
    if (row == 1) {
      tiles().pack_transposed(in, column, count, here, out, width);
      for (auto j = ceil_div(here, panels.lanes) * panels.lanes; j < width; ++j)
        for (std::int64_t k = 0; k < count; ++k) out[k * width + j] = 0;
      continue;
    }
    for (std::int64_t k = 0; k < count; ++k, out += width, in += row) {
      if (column == 1)
        std::memcpy(out, in, sizeof(float) * static_cast<std::size_t>(here));
      else
        for (std::int64_t j = 0; j < here; ++j) out[j] = in[j * column];
      std::fill(out + here, out + width, 0.0f);
    }
  }
}

/// What so many rows cost, in rows: few of them leave multiply-adds waiting, and calls cost something.
double cost_of_rows(std::int64_t rows) {
  if (rows == 0) return 0;
  const std::int64_t most = tiles().rows[2], parts = ceil_div(rows, most);
  double sum = 0;
  for (std::int64_t part = 0, first = 0; part < parts; ++part) {
    const auto count = (rows - first) / (parts - part);
    sum += static_cast<double>(std::max<std::int64_t>(count, 4)) + 1.5;
    first += count;
  }
  return sum;
}

/// Rows of the strips that a line of `width` points is cut into; what is left is done apart.
std::int64_t best_rows(std::int64_t width) {
  const std::int64_t most = tiles().strip;
  std::int64_t best = most;
  double least = 1e300;
  for (std::int64_t rows = most; rows >= 4; --rows) {
    const double cost = static_cast<double>(width / rows) * cost_of_rows(rows) + cost_of_rows(width % rows);
    if (cost < least) least = cost, best = rows;
  }
  return best;
}

}  // namespace

Panels panels_of(std::int64_t columns, std::int64_t depth) {
  Panels p;
  p.columns = columns;
  p.depth = depth;
  p.lanes = tiles().lanes;
  const auto vectors = ceil_div(columns, p.lanes);
  p.first = vectors == 1 ? 1 : vectors % 2 == 0 ? 2 : 3;
  p.count = vectors == 0 ? 0 : 1 + (vectors - p.first) / 2;
  return p;
}

Product::Product(std::int64_t depth, std::int64_t columns, std::int64_t run)
    : panels(panels_of(columns, depth)), dots(better_as_dots(depth, columns, run)) {}

void Product::pack(std::int64_t first, std::int64_t count, const float* from, std::int64_t row,
                   std::int64_t column, float* to) const {
  if (!dots) return pack_panels(panels, first, count, from, row, column, to);
  for (std::int64_t j = 0; j < panels.columns; ++j)
    for (std::int64_t k = 0; k < count; ++k) to[j * panels.depth + first + k] = from[k * row + j * column];
}

void Product::add_region(Region region, const std::vector<Segment>& list) {
  depth_blocks = dots ? 1 : std::max<std::int64_t>(1, ceil_div(panels.depth - kDepthBlock / 2, kDepthBlock));
  const std::int64_t part = ceil_div(panels.depth, depth_blocks);
  region.cut = cuts.size();
  cuts.push_back(segments.size());
  std::int64_t bound = part;
  const auto close = [&] {  // kernels want at least one segment
    if (segments.size() == cuts.back()) segments.push_back({0, 0, 0});
    cuts.push_back(segments.size());
    bound += part;
  };
  for (auto s : list) {
    while (s.length > 0) {
      while (s.b >= bound) close();
      const auto length = std::min(s.length, bound - s.b);
      segments.push_back({s.a, s.b, length});
      s = {s.a + length, s.b + length, s.length - length};
    }
  }
  while (cuts.size() < region.cut + static_cast<std::size_t>(depth_blocks) + 1) close();
  if (region.a_line == region.width * region.a_step && region.c_line == region.width * region.c_step) {
    region.width *= region.lines;
    region.lines = 1;
  }
  regions.push_back(region);
}

void Product::cut_region(std::size_t index, std::int64_t most_repeats) {
  const Region& r = regions[index];
  const auto add = [&](std::int64_t line, std::int64_t column, std::int64_t rows, std::int64_t repeat,
                       std::int64_t line_move, std::int64_t column_move) {
    for (std::int64_t i = 0; rows > 0 && i < repeat; i += most_repeats)
      strips.push_back({index, line + i * line_move, column + i * column_move, rows,
                        std::min(most_repeats, repeat - i), line_move, column_move});
  };
  const std::int64_t most = tiles().strip;
  if (r.width > most) {  // along the lines; what is left at their ends goes from line to line
    const auto rows = best_rows(r.width), sets = r.width / rows, rest = r.width % rows;
    const auto together = std::max<std::int64_t>(1, most_repeats / sets);
    for (std::int64_t line = 0; line < r.lines; line += together) {
      const auto end = std::min(line + together, r.lines);
      for (auto i = line; i < end; ++i) add(i, 0, rows, sets, 0, rows);
      add(line, sets * rows, rest, end - line, 1, 0);
    }
  } else {  // several lines at once
    std::int64_t lines = 1;
    double least = 1e300;
    for (std::int64_t n = 1; n <= std::min(most / r.width, r.lines); ++n) {
      const double cost =
          static_cast<double>(r.lines / n) * cost_of_rows(n * r.width) + cost_of_rows(r.lines % n * r.width);
      if (cost <= least) least = cost, lines = n;
    }
    const auto sets = r.lines / lines;
    add(0, 0, lines * r.width, sets, lines, 0);
    add(sets * lines, 0, r.lines % lines * r.width, 1, 0, 0);
  }
}

void Product::cut_strips() {
  strips.clear();
  const auto most = static_cast<std::int64_t>(tiles().strip);
  auto repeats = kStripBytes / (4 * most * std::max<std::int64_t>(1, panels.depth));
  if (staged)
    repeats =
        std::min(repeats, kStripBytes / (4 * most * std::min(block * 2 * panels.lanes, panels.columns)));
  for (std::size_t i = 0; i < regions.size(); ++i) cut_region(i, std::clamp<std::int64_t>(repeats, 1, 64));
}

void Product::cut_chunks(double rows) {
  chunks = {0};
  double sum = 0;
  for (std::size_t s = 0; s < strips.size(); ++s) {
    sum += static_cast<double>(strips[s].rows * strips[s].repeat);
    if (sum >= rows && s + 1 < strips.size()) chunks.push_back(s + 1), sum = 0;
  }
  chunks.push_back(strips.size());
}

std::int64_t Product::points() const {
  std::int64_t sum = 0;
  for (const auto& r : regions) sum += r.width * r.lines;
  return sum;
}

double Product::multiply_adds() const {
  double sum = 0;
  for (const auto& r : regions)
    for (auto s = cuts[r.cut]; s < cuts[r.cut + static_cast<std::size_t>(depth_blocks)]; ++s)
      sum += static_cast<double>(segments[s].length * r.width * r.lines);
  return sum * static_cast<double>(panels.columns * groups) * static_cast<double>(batches.size());
}

double Product::microseconds(Family family) const {
  const double work = multiply_adds();
  const auto rows = points();
  if (rows == 1)  // B is read once: memory decides
    return cost_of(family, 0) + 0.9 * (cost_of(Family::matmul_row, work) - cost_of(Family::matmul_row, 0));
  // Several panels at once make up for few rows.
  return cost_of(family, work * (rows <= 8 ? 0.85 : 1.0));
}

void Product::divide() {
  const auto panel_bytes = std::max<std::int64_t>(1, panels.depth * 2 * panels.lanes * 4);
  const auto panel_count = std::max<std::int64_t>(1, panels.count);
  const double together = static_cast<double>(groups) * static_cast<double>(batches.size());
  const double row_us =
      multiply_adds() / rate() * static_cast<double>(panels.padded_columns()) /
      static_cast<double>(std::max<std::int64_t>(1, panels.columns * points() * panel_count)) /
      together;  // of one panel
  const double total_us = together * static_cast<double>(panel_count) *
                          std::max(row_us * static_cast<double>(points()),
                                   static_cast<double>(panel_bytes) / kBytesPerMicrosecond);
  const auto cut = [&](std::int64_t most) {
    blocks = ceil_div(panel_count, std::clamp<std::int64_t>(most, 1, panel_count));
    block = ceil_div(panel_count, blocks);
    blocks = ceil_div(panel_count, block);
  };
  const bool few_rows = points() <= tiles().strip;  // panels are read once, several together
  cut(few_rows ? std::max<std::int64_t>(4, kBlockBytes / panel_bytes / 4 * 4) : kBlockBytes / panel_bytes);
  cut_strips();
  cut_chunks(kTaskMicroseconds / (row_us * static_cast<double>(block) + 1e-9));
  const auto have = [&] {
    return static_cast<std::int64_t>(chunks.size() - 1) * groups * static_cast<std::int64_t>(batches.size());
  };
  // Few tasks although there is work for threads: cut the columns.
  const auto wanted = static_cast<std::int64_t>(std::min(8.0, total_us / kLeastMicroseconds));
  if (have() * blocks < wanted) cut(panel_count * have() / wanted);
  tasks = have() * blocks;
  grain = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(kLeastMicroseconds * static_cast<double>(tasks) / (total_us + 1e-9)));
}

Product plain_product(std::int64_t rows, std::int64_t depth, std::int64_t columns, std::int64_t a_row,
                      std::int64_t c_row) {
  Product p(depth, columns, depth);
  Region region;
  region.width = rows;
  region.a_step = a_row;
  p.c_row = p.add_row = p.dense_row = c_row;
  p.add_region(region, {{0, 0, depth}});
  return p;
}

}  // namespace lamina::gemm
