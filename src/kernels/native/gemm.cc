#include "kernels/native/gemm.h"

#include <algorithm>
#include <cstring>

#include "base/cpu.h"
#include "base/parallel.h"
#include "kernels/native/gemm_dots.h"
#include "kernels/native/stage_program.h"

namespace lamina::gemm {
namespace {

/// What one task reads of B over and over: a part of L2.
constexpr std::int64_t kBlockBytes = 512 << 10;
/// k of the rows of a strip and of a panel that are read together.
constexpr std::int64_t kDepthBlock = 2048;
constexpr double kTaskMicroseconds = 40, kLeastMicroseconds = 20;

/// Multiply-adds per microsecond of one thread, and bytes of B that are read once, roughly.
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
constexpr double kBytesPerMicrosecond = 20000;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// One task: a block of panels for some strips.
class Task {
 public:
  Task(const Product& product, const Operands& operands, std::int64_t index, StageRun* stages)
      : p_(product), o_(operands), tiles_(tiles()), dots_(dots()), stages_(stages) {
    const std::int64_t chunk = index % p_.chunks;
    index /= p_.chunks;
    first_panel_ = index % p_.blocks * p_.block;
    last_panel_ = std::min(first_panel_ + p_.block, p_.panels.count);
    index /= p_.blocks;
    const std::int64_t group = index % p_.groups;
    const Batch& batch = p_.batches[static_cast<std::size_t>(index / p_.groups)];
    first_strip_ = chunk * p_.chunk;
    last_strip_ = std::min(first_strip_ + p_.chunk, static_cast<std::int64_t>(p_.strips.size()));
    a_ = o_.a + batch.a + group * p_.a_group;
    b_ = o_.b + batch.b + group * p_.packed_floats();
    c_ = batch.c + group * p_.c_group;
    bias_ = o_.bias ? o_.bias + group * p_.panels.padded_columns() : nullptr;
    tile_.finish = p_.finish;
    tile_.a = a_rows_;
    tile_.a_offset = 0;
    tile_.c = c_rows_;
    tile_.add = o_.add ? add_rows_ : nullptr;
    if (p_.dots && bias_)
      for (std::int64_t i = 0; i < kMostDots; ++i) dot_bias_[i] = bias_[i % p_.panels.columns];
  }

  void run() {
    for (std::int64_t part = 0; part < p_.depth_blocks; ++part) {
      tile_.accumulate = part > 0;
      tile_.last = part + 1 == p_.depth_blocks;
      for (auto s = first_strip_; s < last_strip_; ++s)
        run_strip(p_.strips[static_cast<std::size_t>(s)], part);
    }
  }

 private:
  void run_strip(const Strip& strip, std::int64_t part) {
    const Region& region = p_.regions[strip.region];
    const auto cut = p_.cuts.data() + region.cut + part;
    tile_.segments = p_.segments.data() + cut[0];
    tile_.segment_count = static_cast<std::int64_t>(cut[1] - cut[0]);
    point_rows(region, strip);
    if (p_.dots)
      run_dots(strip.count);
    else
      run_panels(strip.count);
    if (stages_ && tile_.last) run_stages(strip.count);
  }

  /// The epilogue of a strip's columns: rows that follow each other in memory at once.
  void run_stages(std::int64_t rows) {
    const std::int64_t begin = p_.panels.column(first_panel_),
                       count = std::min(p_.panels.column(last_panel_), p_.panels.columns) - begin;
    for (std::int64_t i = 0; i < rows;) {
      const std::int64_t from = i++;
      while (i < rows && c_rows_[i] == c_rows_[i - 1] + count) ++i;
      float* c = c_rows_[from] + begin;
      (*stages_)(c, c, o_.first + (c - o_.c), (i - from) * count);
    }
  }

  void point_rows(const Region& region, const Strip& strip) {
    std::int64_t y = strip.line, x = strip.column;
    for (std::int64_t i = 0; i < strip.count;) {
      const float* a = a_ + region.a_first + y * region.a_line + x * region.a_step;
      const std::int64_t first = c_ + region.c_first + y * region.c_line + x * region.c_step,
                         end = std::min(strip.count, i + region.width - x);
      float* c = o_.c + first;
      if (o_.add)
        for (std::int64_t j = 0; j < end - i; ++j) add_rows_[i + j] = o_.add + first + j * region.c_step;
      for (; i < end; ++i, a += region.a_step, c += region.c_step) a_rows_[i] = a, c_rows_[i] = c;
      x = 0;
      ++y;
    }
  }

  void run_panels(std::int64_t rows) {
    const Panels& panels = p_.panels;
    for (auto panel = first_panel_; panel < last_panel_;) {
      const auto vectors = panels.vectors(panel);
      const bool wide =
          rows <= tiles_.wide_rows && vectors == 2 && panel + tiles_.wide_panels[rows] <= last_panel_;
      const std::int64_t together = wide ? tiles_.wide_panels[rows] : 1;
      const std::int64_t width = vectors * panels.lanes;
      tile_.c_offset = panels.column(panel);
      tile_.columns = std::min(together * width, panels.columns - tile_.c_offset);
      tile_.bias = bias_ && !tile_.accumulate ? bias_ + tile_.c_offset : nullptr;
      tile_.b = b_ + (o_.b_row ? tile_.c_offset : panels.offset(panel));
      tile_.b_row = o_.b_row ? o_.b_row : width;
      tile_.b_panel = o_.b_row ? width : width * panels.depth;
      if (wide)
        tiles_.wide[rows](tile_);
      else
        run_rows(static_cast<std::size_t>(vectors), rows);
      panel += together;
    }
  }

  void run_dots(std::int64_t rows) {
    const auto columns = static_cast<std::size_t>(p_.panels.columns);
    const std::int64_t most = dots_.rows[columns];
    DotTile t;
    t.segments = tile_.segments;
    t.segment_count = tile_.segment_count;
    t.b = b_;
    t.depth = p_.panels.depth;
    t.bias = bias_ ? dot_bias_ : nullptr;
    t.finish = p_.finish;
    for (std::int64_t first = 0; first < rows; first += most) {
      t.a = a_rows_ + first;
      t.c = c_rows_ + first;
      t.add = o_.add ? add_rows_ + first : nullptr;
      t.rows = static_cast<int>(std::min(most, rows - first));
      dots_.kernels[columns](t);
    }
  }

  /// A strip's rows in near equal parts that a kernel takes.
  void run_rows(std::size_t vectors, std::int64_t rows) {
    const std::int64_t parts = ceil_div(rows, tiles_.rows[vectors]);
    for (std::int64_t part = 0, first = 0; part < parts; ++part) {
      const std::int64_t count = (rows - first) / (parts - part);
      tile_.a = a_rows_ + first;
      tile_.c = c_rows_ + first;
      if (o_.add) tile_.add = add_rows_ + first;
      tiles_.kernels[vectors][count](tile_);
      first += count;
    }
    tile_.a = a_rows_;
    tile_.c = c_rows_;
    if (o_.add) tile_.add = add_rows_;
  }

  const Product& p_;
  const Operands& o_;
  const Tiles& tiles_;
  const Dots& dots_;
  std::int64_t first_panel_, last_panel_, first_strip_, last_strip_;
  const float *a_, *b_, *bias_;
  std::int64_t c_;
  const float* a_rows_[kMostRows];
  float* c_rows_[kMostRows];
  const float* add_rows_[kMostRows];
  float dot_bias_[kMostDots];
  Tile tile_;
  StageRun* stages_;
};

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

namespace {

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

}  // namespace

Product::Product(std::int64_t depth, std::int64_t columns, std::int64_t run)
    : panels(panels_of(columns, depth)), dots(better_as_dots(depth, columns, run)) {}

void Product::pack(std::int64_t first, std::int64_t count, const float* from, std::int64_t row,
                   std::int64_t column, float* to) const {
  if (!dots) return pack_panels(panels, first, count, from, row, column, to);
  for (std::int64_t j = 0; j < panels.columns; ++j)
    for (std::int64_t k = 0; k < count; ++k) to[j * panels.depth + first + k] = from[k * row + j * column];
}

void Product::add_region(Region region, std::int64_t lines, const std::vector<Segment>& list) {
  depth_blocks = dots ? 1 : std::max<std::int64_t>(1, ceil_div(panels.depth - kDepthBlock / 2, kDepthBlock));
  const std::int64_t part = ceil_div(panels.depth, depth_blocks);
  region.cut = cuts.size();
  cuts.push_back(segments.size());
  std::int64_t bound = part;
  for (auto s : list) {
    while (s.length > 0) {
      while (s.b >= bound) cuts.push_back(segments.size()), bound += part;
      const auto length = std::min(s.length, bound - s.b);
      segments.push_back({s.a, s.b, length});
      s = {s.a + length, s.b + length, s.length - length};
    }
  }
  while (cuts.size() < region.cut + static_cast<std::size_t>(depth_blocks) + 1)
    cuts.push_back(segments.size());
  const auto positions = region.width * lines, most = static_cast<std::int64_t>(tiles().strip);
  const auto parts = ceil_div(positions, most);
  for (std::int64_t i = 0, first = 0; i < parts; ++i) {
    const auto count = (positions - first) / (parts - i);
    strips.push_back({regions.size(), first / region.width, first % region.width, count});
    first += count;
  }
  regions.push_back(region);
}

double Product::multiply_adds() const {
  double sum = 0;
  for (const auto& strip : strips) {
    const auto cut = regions[strip.region].cut;
    for (auto s = cuts[cut]; s < cuts[cut + static_cast<std::size_t>(depth_blocks)]; ++s)
      sum += static_cast<double>(segments[s].length * strip.count);
  }
  return sum * static_cast<double>(panels.columns * groups) * static_cast<double>(batches.size());
}

double Product::microseconds(Family family) const {
  std::int64_t rows = 0;
  for (const auto& s : strips) rows += s.count;
  const double work = multiply_adds();
  if (rows == 1)  // B is read once: memory decides
    return cost_of(family, 0) + 0.9 * (cost_of(Family::matmul_row, work) - cost_of(Family::matmul_row, 0));
  // Several panels at once make up for few rows.
  return cost_of(family, work * (rows <= 8 ? 0.85 : 1.0));
}

void Product::divide() {
  const auto panel_bytes = std::max<std::int64_t>(1, panels.depth * 2 * panels.lanes * 4);
  const auto strip_count = std::max<std::int64_t>(1, static_cast<std::int64_t>(strips.size()));
  const auto panel_count = std::max<std::int64_t>(1, panels.count);
  const double padding = static_cast<double>(panels.padded_columns()) / static_cast<double>(panels.columns);
  const double strip_us = multiply_adds() * padding / rate() /
                          static_cast<double>(strip_count * panel_count * groups) /
                          static_cast<double>(batches.size());  // of one panel
  const auto together = static_cast<double>(groups) * static_cast<double>(batches.size());
  const double total_us = together * static_cast<double>(panel_count) *
                          std::max(strip_us * static_cast<double>(strip_count),
                                   static_cast<double>(panel_bytes) / kBytesPerMicrosecond);
  auto cut = [](std::int64_t count, std::int64_t most, std::int64_t& size, std::int64_t& number) {
    number = ceil_div(count, std::clamp<std::int64_t>(most, 1, count));
    size = ceil_div(count, number);
    number = ceil_div(count, size);
  };
  cut(panel_count, std::max<std::int64_t>(4, kBlockBytes / panel_bytes / 4 * 4), block, blocks);
  if (panel_bytes * 4 > 2 * kBlockBytes && strip_count > 1)
    cut(panel_count, kBlockBytes / panel_bytes, block, blocks);
  cut(strip_count,
      static_cast<std::int64_t>(kTaskMicroseconds / (strip_us * static_cast<double>(block) + 1e-9)), chunk,
      chunks);
  // Few tasks although there is work for threads: cut the columns.
  const auto wanted = static_cast<std::int64_t>(std::min(8.0, total_us / kLeastMicroseconds));
  const auto have = chunks * groups * static_cast<std::int64_t>(batches.size());
  if (have * blocks < wanted) cut(panel_count, panel_count * have / wanted, block, blocks);
  tasks = have * blocks;
  grain = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(kLeastMicroseconds * static_cast<double>(tasks) / (total_us + 1e-9)));
}

Product plain_product(std::int64_t rows, std::int64_t depth, std::int64_t columns, std::int64_t a_row,
                      std::int64_t c_row) {
  Product p(depth, columns, depth);
  Region region;
  region.width = rows;
  region.a_step = a_row;
  region.c_step = c_row;
  p.add_region(region, 1, {{0, 0, depth}});
  return p;
}

void run(const Product& product, const Operands& operands) {
  parallel_for(product.tasks, product.grain, [&](std::int64_t begin, std::int64_t end) {
    if (operands.stages) {
      StageRun stages(*operands.stages, operands.inputs);
      for (auto t = begin; t < end; ++t) Task(product, operands, t, &stages).run();
    } else {
      for (auto t = begin; t < end; ++t) Task(product, operands, t, nullptr).run();
    }
  });
}

}  // namespace lamina::gemm
