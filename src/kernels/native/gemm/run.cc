/// Runs products: tasks of strips by panels, strip after strip.
#include <algorithm>
#include <utility>

#include "base/parallel.h"
#include "base/work_partition.h"
#include "kernels/native/gemm/dots.h"
#include "kernels/native/gemm/product.h"

namespace lamina::gemm {
namespace {

/// Cells of B that stay in L1 with the rest of a strip.
std::int64_t small_b(const Product& p) {
  return static_cast<std::int64_t>(p.machine->l1) / p.units().cell / 2;
}

/// Where stages run last and sums do not lie where their results will.
std::byte* sums_of_all(const Product& p, const Operands& o) {
  return o.apart + p.tasks.slots * p.apart_bytes();
}

Sums all_sums(const Product& p, const Operands& o, const Patch& patch) {
  const auto& e = p.epilogue;
  return e.apart() ? Sums(p.all_rows, sums_of_all(p, o), patch, nullptr) : e.sums(o.c, patch, nullptr);
}

/// One task: a block of panels for some strips.
class Task {
 public:
  Task(const Product& product, const Operands& operands, std::int64_t index, std::byte* apart,
       StageRun* stages)
      : p_(product),
        o_(operands),
        tiles_(tiles(product.arithmetic)),
        apart_(apart),
        matched_(apart + product.sums_bytes()),
        stages_(stages) {
    const auto next = [&index](std::int64_t count) {
      const auto i = index % count;
      index /= count;
      return i;
    };
    const auto chunks = static_cast<std::int64_t>(p_.chunks.size()) - 1;
    std::int64_t chunk = 0, block = 0, group = 0;
    if (p_.rows_first)
      block = next(p_.blocks.number), group = next(p_.groups), chunk = next(chunks);
    else
      chunk = next(chunks), block = next(p_.blocks.number), group = next(p_.groups);
    first_panel_ = block * p_.blocks.size;
    last_panel_ = std::min(first_panel_ + p_.blocks.size, p_.panels.count);
    first_strip_ = p_.chunks[static_cast<std::size_t>(chunk)];
    last_strip_ = p_.chunks[static_cast<std::size_t>(chunk) + 1];
    start(p_.batches[index], group);
  }

  /// All strips of some panels.
  Task(const Product& product, const Operands& operands, std::int64_t first_panel, std::int64_t last_panel,
       StageRun* stages)
      : p_(product),
        o_(operands),
        tiles_(tiles(product.arithmetic)),
        first_panel_(first_panel),
        last_panel_(last_panel),
        first_strip_(0),
        last_strip_(p_.strips.count()),
        stages_(stages) {
    start(p_.batches[0], 0);
  }

  /// `first`: of those that run one after the other on this thread.
  void run(bool first) {
    for (std::int64_t part = 0; part < p_.depth_blocks; ++part) {
      tile_.accumulate = part > 0;
      tile_.last = part + 1 == p_.depth_blocks;
      StripWalk walk(p_.strips, first_strip_);
      for (auto s = first_strip_; s < last_strip_; ++s) {
        far_ = s == first_strip_ && (first || s == 0);
        run_strip(walk.next(), part);
      }
    }
  }

 private:
  void start(const Positions<3>::Offsets& batch, std::int64_t group) {
    a_ = static_cast<const std::byte*>(o_.a) + (batch[0] + group * p_.a_group) * units_.element;
    b_ = static_cast<const std::byte*>(o_.b) + (batch[1] + group * p_.packed_floats()) * units_.cell;
    row_ = batch[2];
    column_ = group * p_.panels.columns;
    group_ = group;
    group_bias_ = o_.bias ? static_cast<const float*>(o_.bias) + group * p_.panels.padded_columns() +
                                batch[1] / p_.packed_floats() * p_.bias_b
                          : nullptr;
    tile_.finish = p_.epilogue.finish;
    tile_.integers = p_.epilogue.integer_finish();
    if (p_.dots && group_bias_)
      for (std::int64_t i = 0; i < kMostDots; ++i) dot_bias_[i] = group_bias_[i % p_.panels.columns];
  }

  void run_strip(const Strip& strip, std::int64_t part) {
    const Region& r = p_.regions[strip.region];
    const Rows& added = p_.epilogue.added;
    const auto cut = p_.cuts.data() + r.cut + part;
    tile_.segments = p_.segments.data() + cut[0];
    tile_.segment_count = static_cast<std::int64_t>(cut[1] - cut[0]);
    a_first_ = a_ + (r.a_first + strip.line * r.a_line + strip.column * r.a_step) * units_.element;
    bias_ = group_bias_ ? group_bias_ + r.bias * p_.groups * p_.panels.padded_columns() : nullptr;
    point_ = row_ + r.c_first + strip.line * r.c_line + strip.column * r.c_step;
    point_step_ = strip.down ? r.c_line : r.c_step;
    point_move_ = strip.line_move * r.c_line + strip.column_move * r.c_step;
    tile_.a_step = (strip.down ? r.a_line : r.a_step) * units_.element;
    tile_.a_move = (strip.line_move * r.a_line + strip.column_move * r.a_step) * units_.element;
    tile_.add_step = added.bytes(point_step_ * added.step);
    tile_.add_move = added.bytes(point_move_ * added.step);
    tile_.repeat = strip.repeat;
    const auto sums = sums_of(strip);
    c_ = sums.memory();
    tile_.c_step = sums.row_bytes();
    tile_.c_move = sums.set_bytes();
    if (p_.dots)
      run_dots(strip);
    else if (p_.order != Order::panels)
      run_thin(strip);
    else if (p_.matched_order)
      run_matched(strip);
    else
      run_panels(strip.rows, first_panel_, last_panel_);
    if (stages_ && tile_.last) sums.apply(*stages_, o_.first);
  }

  /// Sums of the task's columns.
  Sums sums_of(const Strip& strip) const {
    const auto begin = p_.panels.column(first_panel_),
               count = std::min(p_.panels.column(last_panel_), p_.panels.columns) - begin;
    const Patch patch{point_, strip.rows, column_ + begin, count, point_step_, strip.repeat, point_move_};
    if (p_.stages_last) return all_sums(p_, o_, patch);
    return p_.epilogue.sums(o_.c, patch, apart_);
  }
  std::byte* c_at(std::int64_t column) const {
    return c_ + (column - p_.panels.column(first_panel_)) * tile_.integers.stored_bytes();
  }
  const std::byte* add_at(std::int64_t column) const {
    return o_.add ? p_.epilogue.add_at(o_.add, point_, column_ + column) : nullptr;
  }

  /// Set after set of rows, each for one group of panels after the other in the order of that.
  void run_matched(const Strip& strip) {
    const auto& order = *p_.matched_order;
    const Tile all = tile_;
    Segment list[kMostMatchedSegments];
    tile_.segments = list;
    tile_.a_step = p_.matched_row();
    tile_.repeat = 1;
    for (std::int64_t set = 0; set < strip.repeat; ++set, c_ += all.c_move, point_ += point_move_) {
      const MatchedRows rows{a_first_, all.a_step, matched_, tile_.a_step, strip.rows};
      for (auto panel = first_panel_; panel < last_panel_;) {
        const auto group = panel / order.panels, end = std::min((group + 1) * order.panels, last_panel_);
        match_rows(all, rows, group_ * order.groups + group, list);
        const auto* from = std::exchange(a_first_, matched_);
        run_panels(strip.rows, panel, end);
        a_first_ = from;
        panel = end;
      }
      a_first_ += all.a_move;
    }
  }

  /// Copies rows of A in the order of a group of columns; `to`: their segments then.
  void match_rows(const Tile& from, const MatchedRows& rows, std::int64_t group, Segment* to) const {
    const auto* starts = p_.matched_order->starts_of(group);
    std::int64_t bytes = 0;
    for (std::int64_t i = 0; i < from.segment_count; ++i) {
      const auto& s = from.segments[i];
      const auto first = s.b / MatchedOrder::kLeastWords, count = s.length / MatchedOrder::kLeastWords;
      to[i] = {bytes, starts[first], starts[first + count] - starts[first]};
      auto part = rows;
      part.from += s.a;
      part.to += bytes;
      matched_order_loops().copy(*p_.matched_order, group, first, count, part);
      bytes += to[i].length * kWordBytes;
    }
  }

  void run_panels(std::int64_t rows, std::int64_t panel, std::int64_t last_panel) {
    const Panels& panels = p_.panels;
    if (panels.vectors(panel) != 2)
      run_rows(rows, panel, 1, 1, tiles_.shape.rows[panels.vectors(panel)]), ++panel;
    if (panel == last_panel) return;
    // Small panels stay in L1: then fewer rows by more panels write C line after line.
    const bool flat =
        tiles_.shape.flat != 0 && rows > tiles_.shape.flat && 2 * panels.lanes * panels.depth <= small_b_ / 2;
    const std::int64_t together = tiles_.shape.panels[flat ? tiles_.shape.flat : rows];
    if (together != 0) {
      const auto steps = (last_panel - panel) / together;
      if (steps != 0) run_rows(rows, panel, together, steps, flat ? tiles_.shape.flat : rows);
      panel += steps * together;
    }
    if (panel != last_panel) run_rows(rows, panel, 1, last_panel - panel, tiles_.shape.rows[2]);
  }

  /// A strip's rows, in near equal parts of at most `most`, by `steps` groups of `together` panels: set after
  /// set of rows where the panels stay in L1, else group after group.
  void run_rows(std::int64_t rows, std::int64_t panel, std::int64_t together, std::int64_t steps,
                std::int64_t most) {
    const auto parts = ceil_div(rows, most);
    const bool held = p_.arithmetic != Arithmetic::floats;  // sums of several sets are finished at once
    if (!held || parts == 1 || rows % parts != 0 || !follow_each_other(rows))
      return run_parts(rows, parts, panel, together, steps);
    const Tile all = tile_;
    const auto count = rows / parts;
    tile_.repeat *= parts;
    tile_.a_move = count * tile_.a_step;
    tile_.c_move = count * tile_.c_step;
    tile_.add_move = count * tile_.add_step;
    run_parts(count, 1, panel, together, steps);
    tile_.repeat = all.repeat;
    tile_.a_move = all.a_move;
    tile_.c_move = all.c_move;
    tile_.add_move = all.add_move;
  }

  /// Whether sets of so many rows lie one behind the other.
  bool follow_each_other(std::int64_t rows) const {
    return tile_.repeat == 1 || (tile_.a_move == rows * tile_.a_step && tile_.c_move == rows * tile_.c_step &&
                                 (!o_.add || tile_.add_move == rows * tile_.add_step));
  }

  void run_parts(std::int64_t rows, std::int64_t parts, std::int64_t panel, std::int64_t together,
                 std::int64_t steps) {
    const Panels& panels = p_.panels;
    const auto vectors = panels.vectors(panel), width = vectors * panels.lanes;
    const bool near = steps * together * width * panels.depth <= small_b_;
    const auto at_once = near || (tile_.repeat == 1 && !(far_ && parts > 1)) ? steps : 1;
    tile_.b_row = (o_.b_row ? o_.b_row : width) * units_.cell;
    tile_.b_panel = (o_.b_row ? width : width * panels.rows()) * units_.cell;
    tile_.steps = at_once;
    tile_.ahead = nullptr;
    for (; steps > 0; steps -= at_once, panel += at_once * together) {
      const auto column = panels.column(panel);
      tile_.columns = std::min(at_once * together * width, panels.columns - column);
      tile_.channel = column_ + column;
      tile_.bias = bias_ && !tile_.accumulate ? bias_ + column : nullptr;
      tile_.b = b_ + (o_.b_row ? column : panels.offset(panel)) * units_.cell;
      const bool b_ahead = far_ && !near && !o_.b_row;
      if (b_ahead) fetch_ahead(at_once == 1 ? parts * tile_.repeat : 1, together * width);
      for (std::int64_t part = 0, first = 0; part < parts; ++part) {
        const std::int64_t count = (rows - first) / (parts - part);
        tile_.a = a_first_ + first * tile_.a_step;
        tile_.c = c_at(column) + first * tile_.c_step;
        tile_.add = o_.add ? add_at(column) + first * tile_.add_step : nullptr;
        if (!b_ahead && !p_.matched_order && at_once == steps && part + 1 == parts) fetch_rows_ahead(count);
        run_tile(count, vectors, together);
        if (b_ahead && at_once == 1) tile_.ahead += tile_.repeat * panels.depth / 4 * tile_.ahead_move;
        first += count;
      }
    }
  }

  /// The panels that follow come into L2 in as many shares. Behind the last there is nothing, which harms
  /// not.
  void fetch_ahead(std::int64_t shares, std::int64_t columns) {
    tile_.ahead = tile_.b + columns * p_.panels.rows() * units_.cell;
    tile_.ahead_move = std::max<std::int64_t>(64, 4 * columns * units_.cell / shares);
  }

  /// The rows of A that follow, where each lies in one piece.
  void fetch_rows_ahead(std::int64_t rows) {
    if (tile_.segment_count != 1) return;
    const auto move = tile_.repeat > 1 ? tile_.a_move : rows * tile_.a_step;
    tile_.ahead = tile_.a + tile_.repeat * move;
    tile_.ahead_move = ceil_div(move, std::max<std::int64_t>(1, tile_.steps * (p_.panels.depth / 4)));
  }

  void run_tile(std::int64_t rows, std::int64_t vectors, std::int64_t together) {
    if (together > 1 && tiles_.shape.panels[rows] == together) return tiles_.wide[rows](tile_);
    const auto steps = tile_.steps;
    tile_.steps = steps * together;
    tiles_.kernels[vectors][rows](tile_);
    tile_.steps = steps;
  }

  void run_thin(const Strip& strip) {
    const auto column = p_.panels.column(first_panel_);
    ThinTile t;
    t.a_step = tile_.a_step / kWordBytes;
    t.rows = strip.rows;
    t.b = reinterpret_cast<const float*>(b_) + column * (p_.order == Order::lists ? o_.b_row : 1);
    t.b_step = o_.b_row;
    t.depth = p_.panels.depth;
    t.columns = std::min(p_.panels.column(last_panel_), p_.panels.columns) - column;
    t.c_step = tile_.c_step / kWordBytes;
    t.add_step = tile_.add_step / kWordBytes;
    t.bias = bias_ ? bias_ + column : nullptr;
    t.finish = p_.epilogue.finish;
    const auto kernel = p_.order == Order::lists ? thin().lists : thin().lines;
    for (std::int64_t set = 0; set < strip.repeat; ++set) {
      t.a = reinterpret_cast<const float*>(a_first_ + set * tile_.a_move);
      t.c = reinterpret_cast<float*>(c_at(column) + set * tile_.c_move);
      t.add = o_.add ? reinterpret_cast<const float*>(add_at(column) + set * tile_.add_move) : nullptr;
      kernel(t);
    }
  }

  void run_dots(const Strip& strip) {
    const Dots& dots = gemm::dots();
    const auto columns = static_cast<std::size_t>(p_.panels.columns);
    const std::int64_t most = dots.shape.rows[columns];
    DotTile t;
    t.segments = tile_.segments;
    t.segment_count = tile_.segment_count;
    t.a_step = tile_.a_step / kWordBytes;
    t.b = reinterpret_cast<const float*>(b_);
    t.depth = p_.panels.depth;
    t.c_step = tile_.c_step / kWordBytes;
    t.add_step = tile_.add_step / kWordBytes;
    t.bias = bias_ ? dot_bias_ : nullptr;
    t.finish = p_.epilogue.finish;
    for (std::int64_t set = 0; set < strip.repeat; ++set)
      for (std::int64_t first = 0; first < strip.rows;) {
        t.a = reinterpret_cast<const float*>(a_first_ + set * tile_.a_move + first * tile_.a_step);
        t.c = reinterpret_cast<float*>(c_at(0) + set * tile_.c_move + first * tile_.c_step);
        t.add =
            o_.add ? reinterpret_cast<const float*>(add_at(0) + set * tile_.add_move + first * tile_.add_step)
                   : nullptr;
        const auto left = strip.rows - first;
        if (left >= most) {
          dots.kernels[columns](t);
          first += most;
        } else if (left >= kFewDotRows) {
          dots.few[columns](t);
          first += kFewDotRows;
        } else {
          dots.one[columns](t);
          ++first;
        }
      }
  }

  const Product& p_;
  const Operands& o_;
  const Tiles& tiles_;
  const Units units_ = p_.units();
  const std::int64_t small_b_ = small_b(p_);
  std::int64_t first_panel_, last_panel_;
  std::int64_t first_strip_, last_strip_;
  const std::byte *a_, *b_;
  const float* group_bias_;
  std::int64_t row_, column_, group_;
  // Pointers of the current strip.
  std::byte* c_ = nullptr;  ///< its first point, at the first panel
  const std::byte* a_first_ = nullptr;
  const float* bias_ = nullptr;
  std::int64_t point_ = 0, point_step_ = 0, point_move_ = 0;  ///< in rows of C
  float dot_bias_[kMostDots];
  bool far_ = false;  ///< B comes from far for the first time
  Tile tile_;
  std::byte *apart_ = nullptr, *matched_ = nullptr;
  StageRun* stages_;
};

}  // namespace

void run_panels(const Product& product, const Operands& operands, std::int64_t first, std::int64_t last,
                StageRun* stages) {
  Task(product, operands, first, last, stages).run(true);
}

void run(const Product& product, const Operands& operands) {
  const auto& epilogue = product.epilogue;
  const auto run_tasks = [&](auto begin, auto end, auto slot, StageRun* stages) {
    auto* apart = operands.apart + slot * product.apart_bytes();
    for (auto t = begin; t < end; ++t) Task(product, operands, t, apart, stages).run(t == begin);
  };
  if (!product.stages_last) return epilogue.run(operands.inputs, product.tasks, run_tasks);
  parallel_for(product.tasks, [&](auto begin, auto end, auto slot) { run_tasks(begin, end, slot, nullptr); });
  epilogue.run(operands.inputs, product.last, [&](auto begin, auto end, auto, StageRun* stages) {
    const Patch points{begin, end - begin, 0, epilogue.out.channels};
    auto* sums = epilogue.apart() ? sums_of_all(product, operands) + begin * points.channels * 4 : nullptr;
    epilogue.sums(operands.c, points, sums).apply(*stages, operands.first);
  });
}

}  // namespace lamina::gemm
