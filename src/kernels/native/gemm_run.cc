/// Runs products: tasks of strips by panels, strip after strip.
#include <algorithm>

#include "base/parallel.h"
#include "kernels/native/gemm.h"
#include "kernels/native/gemm_dots.h"
#include "kernels/native/stage_program.h"

namespace lamina::gemm {
namespace {

/// Floats of B that stay in L1 with the rest of a strip.
constexpr std::int64_t kSmallB = 6144;
/// k of panels of which several stay in L1.
constexpr std::int64_t kFlatDepth = 96;

/// One task: a block of panels for some strips.
class Task {
 public:
  Task(const Product& product, const Operands& operands, std::int64_t index, StageRun* stages)
      : p_(product), o_(operands), tiles_(tiles()), stages_(stages) {
    const auto chunks = static_cast<std::int64_t>(p_.chunks.size()) - 1;
    const auto chunk = static_cast<std::size_t>(index % chunks);
    index /= chunks;
    first_panel_ = index % p_.blocks * p_.block;
    last_panel_ = std::min(first_panel_ + p_.block, p_.panels.count);
    index /= p_.blocks;
    const std::int64_t group = index % p_.groups;
    const Batch& batch = p_.batches[static_cast<std::size_t>(index / p_.groups)];
    first_strip_ = p_.chunks[chunk];
    last_strip_ = p_.chunks[chunk + 1];
    a_ = o_.a + batch.a + group * p_.a_group;
    b_ = o_.b + batch.b + group * p_.packed_floats();
    row_ = batch.c;
    column_ = group * p_.panels.columns;
    bias_ = o_.bias ? o_.bias + group * p_.panels.padded_columns() : nullptr;
    tile_.finish = p_.finish;
    tile_.a_offset = 0;
    if (p_.dots && bias_)
      for (std::int64_t i = 0; i < kMostDots; ++i) dot_bias_[i] = bias_[i % p_.panels.columns];
  }

  void run() {
    for (std::int64_t part = 0; part < p_.depth_blocks; ++part) {
      tile_.accumulate = part > 0;
      tile_.last = part + 1 == p_.depth_blocks;
      for (auto s = first_strip_; s < last_strip_; ++s) run_strip(p_.strips[s], part);
    }
  }

 private:
  void run_strip(const Strip& strip, std::int64_t part) {
    const Region& region = p_.regions[strip.region];
    const auto cut = p_.cuts.data() + region.cut + part;
    tile_.segments = p_.segments.data() + cut[0];
    tile_.segment_count = static_cast<std::int64_t>(cut[1] - cut[0]);
    const auto point_move = strip.line_move * region.c_line + strip.column_move * region.c_step;
    tile_.repeat = strip.repeat;
    tile_.a_move = strip.line_move * region.a_line + strip.column_move * region.a_step;
    tile_.c_move = point_move * p_.c_row;
    tile_.add_move = point_move * p_.add_row;
    point_rows(region, strip);
    if (p_.dots)
      run_dots(strip);
    else
      run_panels(strip.rows);
    if (stages_ && tile_.last) run_stages(strip, point_move);
  }

  void point_rows(const Region& region, const Strip& strip) {
    std::int64_t y = strip.line, x = strip.column;
    for (std::int64_t i = 0; i < strip.rows; x = 0, ++y) {
      const auto end = std::min(strip.rows, i + region.width - x);
      const std::int64_t point = row_ + region.c_first + y * region.c_line + x * region.c_step;
      if (o_.add || stages_)
        for (std::int64_t j = i; j < end; ++j) c_points_[j] = point + (j - i) * region.c_step;
      if (o_.add)
        for (std::int64_t j = i; j < end; ++j) add_rows_[j] = o_.add + c_points_[j] * p_.add_row + column_;
      const float* a = a_ + region.a_first + y * region.a_line + x * region.a_step;
      float* c = o_.c + point * p_.c_row + column_;
      const std::int64_t c_step = region.c_step * p_.c_row;
      for (; i < end; ++i, a += region.a_step, c += c_step) a_rows_[i] = a, c_rows_[i] = c;
    }
  }

  void run_panels(std::int64_t rows) {
    const Panels& panels = p_.panels;
    auto panel = first_panel_;
    if (panels.vectors(panel) != 2) run_rows(rows, panel, 1, 1, tiles_.rows[panels.vectors(panel)]), ++panel;
    if (panel == last_panel_) return;
    // Small panels stay in L1: then fewer rows by more panels write C line after line.
    const bool flat = tiles_.flat != 0 && rows > tiles_.flat && panels.depth <= kFlatDepth;
    const std::int64_t together = flat                               ? tiles_.panels[tiles_.flat]
                                  : rows <= tiles_.flat || rows <= 3 ? tiles_.panels[rows]
                                                                     : 0;
    if (together != 0) {
      const auto steps = (last_panel_ - panel) / together;
      if (steps != 0) run_rows(rows, panel, together, steps, flat ? tiles_.flat : rows);
      panel += steps * together;
    }
    if (panel != last_panel_) run_rows(rows, panel, 1, last_panel_ - panel, tiles_.rows[2]);
  }

  /// A strip's rows, in near equal parts of at most `most`, by `steps` groups of `together` panels: set after
  /// set of rows where the panels stay in L1, else group after group.
  void run_rows(std::int64_t rows, std::int64_t panel, std::int64_t together, std::int64_t steps,
                std::int64_t most) {
    const Panels& panels = p_.panels;
    const auto vectors = panels.vectors(panel), width = vectors * panels.lanes;
    const auto at_once = tile_.repeat == 1 || steps * together * width * panels.depth <= kSmallB ? steps : 1;
    tile_.b_row = o_.b_row ? o_.b_row : width;
    tile_.b_panel = o_.b_row ? width : width * panels.depth;
    tile_.steps = at_once;
    for (; steps > 0; steps -= at_once, panel += at_once * together) {
      tile_.c_offset = panels.column(panel);
      tile_.columns = std::min(at_once * together * width, panels.columns - tile_.c_offset);
      tile_.bias = bias_ && !tile_.accumulate ? bias_ + tile_.c_offset : nullptr;
      tile_.b = b_ + (o_.b_row ? tile_.c_offset : panels.offset(panel));
      const std::int64_t parts = (rows + most - 1) / most;
      for (std::int64_t part = 0, first = 0; part < parts; ++part) {
        const std::int64_t count = (rows - first) / (parts - part);
        run_tile(first, count, vectors, together);
        first += count;
      }
    }
  }

  void run_tile(std::int64_t first, std::int64_t rows, std::int64_t vectors, std::int64_t together) {
    tile_.a = a_rows_ + first;
    tile_.c = c_rows_ + first;
    tile_.add = o_.add ? add_rows_ + first : nullptr;
    if (together > 1 && tiles_.panels[rows] == together) return tiles_.wide[rows](tile_);
    const auto steps = tile_.steps;
    tile_.steps = steps * together;
    tiles_.kernels[vectors][rows](tile_);
    tile_.steps = steps;
  }

  void run_dots(const Strip& strip) {
    const Dots& dots = gemm::dots();
    const auto columns = static_cast<std::size_t>(p_.panels.columns);
    const std::int64_t most = dots.rows[columns];
    DotTile t;
    t.segments = tile_.segments;
    t.segment_count = tile_.segment_count;
    t.b = b_;
    t.depth = p_.panels.depth;
    t.bias = bias_ ? dot_bias_ : nullptr;
    t.finish = p_.finish;
    for (std::int64_t set = 0; set < strip.repeat; ++set) {
      for (std::int64_t first = 0; first < strip.rows; first += most) {
        t.a = a_rows_ + first;
        t.c = c_rows_ + first;
        t.add = o_.add ? add_rows_ + first : nullptr;
        t.rows = static_cast<int>(std::min(most, strip.rows - first));
        dots.kernels[columns](t);
      }
      for (std::int64_t i = 0; i < strip.rows; ++i) a_rows_[i] += tile_.a_move, c_rows_[i] += tile_.c_move;
      if (o_.add)
        for (std::int64_t i = 0; i < strip.rows; ++i) add_rows_[i] += tile_.add_move;
    }
  }

  /// The epilogue of a strip's columns: rows that follow each other in memory at once.
  void run_stages(const Strip& strip, std::int64_t point_move) {
    const std::int64_t begin = p_.panels.column(first_panel_),
                       count = std::min(p_.panels.column(last_panel_), p_.panels.columns) - begin;
    const bool dense = count == p_.dense_row && p_.c_row == p_.dense_row;
    std::int64_t first = -1, rows = 0;
    const auto flush = [&] {
      if (rows == 0) return;
      float* c = o_.c + first * p_.c_row + column_ + begin;
      (*stages_)(c, c, first * p_.dense_row + o_.first + column_ + begin, rows * count);
    };
    for (std::int64_t set = 0; set < strip.repeat; ++set)
      for (std::int64_t i = 0; i < strip.rows; ++i) {
        const auto point = c_points_[i] + set * point_move;
        if (dense && rows != 0 && point == first + rows) {
          ++rows;
          continue;
        }
        flush();
        first = point;
        rows = 1;
      }
    flush();
  }

  const Product& p_;
  const Operands& o_;
  const Tiles& tiles_;
  std::int64_t first_panel_, last_panel_;
  std::size_t first_strip_, last_strip_;
  const float *a_, *b_, *bias_;
  std::int64_t row_, column_;
  std::int64_t c_points_[kMostRows];
  const float* a_rows_[kMostRows];
  float* c_rows_[kMostRows];
  const float* add_rows_[kMostRows];
  float dot_bias_[kMostDots];
  Tile tile_;
  StageRun* stages_;
};

}  // namespace

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
