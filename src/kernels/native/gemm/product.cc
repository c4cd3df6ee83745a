/// What a product consists of, and how it is divided; product_packing.cc packs it, run.cc runs it.
#include "kernels/native/gemm/product.h"

#include <algorithm>
#include <utility>

#include "base/cpu.h"
#include "base/parallel.h"
#include "base/work_partition.h"
#include "kernels/native/gemm/dots.h"

namespace lamina::gemm {
namespace {

/// What one task reads of B over and over.
std::int64_t block_bytes(const Machine& m) { return static_cast<std::int64_t>(m.l2 / 4); }
/// k of the rows of a strip and of a panel that are read together.
constexpr std::int64_t kDepthBlock = 2048;
/// A's part of a strip, and C's where an epilogue follows.
std::int64_t strip_bytes(const Machine& m) { return static_cast<std::int64_t>(m.l1 / 2); }
constexpr double kTaskMicroseconds = 40;
/// Longest task of lines.
constexpr double kLineTaskMicroseconds = 2000;
/// Limit of the number of tasks, however large the product is.
constexpr std::int64_t kMostChunks = 4096;
/// Rate at which B is read once.
constexpr double kBytesPerMicrosecond = 20000;
/// What lies in L1 beside the rest, and in L2 from one run to the next.
double nearest_bytes(const Machine& m) { return static_cast<double>(m.l1) * 2 / 3; }
double near_bytes(const Machine& m) { return static_cast<double>(m.l2) / 2; }
/// How much less than oneDNN's products ours gain from several threads, as measured with two.
constexpr double kSharing = 1.25;

/// Cycles per row of A, roughly: broadcasts against vectors along k, whose lanes are summed at the end.
bool better_as_dots(std::int64_t lanes, std::int64_t depth, std::int64_t columns, std::int64_t run) {
  if (columns > dot_shape(static_cast<int>(lanes)).columns || columns == 0 || depth == 0) return false;
  const auto broadcast = static_cast<double>(depth * ceil_div(columns, lanes)) * 0.6;
  const auto vectors = static_cast<double>(depth / run * ceil_div(run, lanes) * columns) * 0.6;
  return vectors + 4.0 * static_cast<double>(columns) < broadcast;
}

/// What so many rows cost, in rows: few of them leave multiply-adds waiting, and calls cost something.
double cost_of_rows(const TileShape& shape, std::int64_t rows) {
  if (rows == 0) return 0;
  const std::int64_t most = shape.rows[2], parts = ceil_div(rows, most);
  double sum = 0;
  for (std::int64_t part = 0, first = 0; part < parts; ++part) {
    const auto count = (rows - first) / (parts - part);
    sum += static_cast<double>(std::max<std::int64_t>(count, 4)) + 1.5;
    first += count;
  }
  return sum;
}

/// Rows of the strips that a line of `width` points is cut into; what is left is done apart.
std::int64_t best_rows(const TileShape& shape, std::int64_t width) {
  const std::int64_t most = std::min<std::int64_t>(width, shape.rows[1]);
  std::int64_t best = most;
  double least = 1e300;
  for (std::int64_t rows = most; rows >= std::min<std::int64_t>(most, 4); --rows) {
    const double cost =
        static_cast<double>(width / rows) * cost_of_rows(shape, rows) + cost_of_rows(shape, width % rows);
    if (cost < least) least = cost, best = rows;
  }
  return best;
}

}  // namespace

Panels panels_of(std::int64_t lanes, std::int64_t columns, std::int64_t depth) {
  Panels p;
  p.columns = columns;
  p.depth = depth;
  p.lanes = lanes;
  const auto vectors = ceil_div(columns, p.lanes);
  p.first = vectors == 1 ? 1 : vectors % 2 == 0 ? 2 : 3;
  p.count = vectors == 0 ? 0 : 1 + (vectors - p.first) / 2;
  return p;
}

Product::Product(const Machine& on, std::int64_t depth, std::int64_t columns, std::int64_t run)
    : machine(&on),
      shape(tile_shape(lanes_of(on.isa()))),
      panels(panels_of(shape.lanes, columns, depth)),
      dots(better_as_dots(shape.lanes, depth, columns, run)) {}

Product::Product(const Machine& on, Arithmetic what, Family family, std::int64_t depth, std::int64_t columns)
    : machine(&on),
      arithmetic(what),
      rate(family),
      shape(tile_shape(lanes_of(on.isa()))),
      panels(panels_of(shape.lanes, columns, depth)) {}

void Product::add_region(Region region, const std::vector<Segment>& list) {
  depth_blocks = dots || order != Order::panels || arithmetic == Arithmetic::matched_quads ||
                         epilogue.apart() || epilogue.integer_finish().stored != IntegerFinish::Stored::sums
                     ? 1
                     : std::max<std::int64_t>(1, ceil_div(panels.depth - kDepthBlock / 2, kDepthBlock));
  const std::int64_t part = ceil_div(panels.depth, depth_blocks), in_word = units().in_word();
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
      s = {s.a + length * in_word, s.b + length, s.length - length};
    }
  }
  while (cuts.size() < region.cut + static_cast<std::size_t>(depth_blocks) + 1) close();
  if (region.a_line == region.width * region.a_step && region.c_line == region.width * region.c_step) {
    region.width *= region.lines;
    region.lines = 1;
  }
  regions.push_back(region);
}

void Product::cut_strips() {
  strips = {};
  const std::int64_t most = shape.rows[1];
  auto repeats = strip_bytes(*machine) / (4 * most * std::max<std::int64_t>(1, panels.depth));
  if (!epilogue.registers_only())
    repeats = std::min(repeats, strip_bytes(*machine) /
                                    (4 * most * std::min(blocks.size * 2 * panels.lanes, panels.columns)));
  for (const auto& r : regions)
    strips.add(Cut(
        r,
        [this](std::int64_t width) {
          return order == Order::lines && width <= kMostLineRows ? width : best_rows(shape, width);
        },
        std::clamp<std::int64_t>(repeats, 1, 64)));
}

void Product::cut_chunks(double rows) {
  chunks = {0};
  const auto end = strips.count();
  if (end > kMostChunks) {  // not looked at one by one
    const auto pieces = std::min(static_cast<double>(points()) / rows, static_cast<double>(kMostChunks));
    const auto count = std::max<std::int64_t>(1, static_cast<std::int64_t>(pieces));
    for (std::int64_t i = 1; i < count; ++i)
      if (const auto bound = strips.bound(i, count); bound > chunks.back()) chunks.push_back(bound);
  } else if (end > 0) {
    StripWalk walk(strips, 0);
    double sum = 0;
    for (std::int64_t s = 1; s < end; ++s) {
      const auto strip = walk.next();
      sum += static_cast<double>(strip.rows * strip.repeat);
      if (sum >= rows) chunks.push_back(s), sum = 0;
    }
  }
  chunks.push_back(end);
}

std::int64_t Product::points() const {
  std::int64_t sum = 0;
  for (const auto& r : regions) sum += r.width * r.lines;
  return sum;
}

std::int64_t Product::matched_bytes() const {
  return arithmetic == Arithmetic::matched_quads ? shape.rows[1] * matched_row() : 0;
}

std::int64_t Product::all_sums_bytes() const {
  return stages_last ? epilogue.apart_bytes(rows_of_c() * epilogue.out.channels) : 0;
}

bool Product::wants_stages_last() const {
  constexpr std::int64_t kFewColumns = 64;  // loops of stages over so many are short
  if (epilogue.registers_only() || panels.columns >= kFewColumns) return false;
  return groups > 1 ||
         std::any_of(regions.begin(), regions.end(), [](const auto& r) { return r.c_step != 1; });
}

std::int64_t Product::sums_bytes() const {
  if (!epilogue.apart() || stages_last) return 0;
  std::int64_t most = 0;
  for (const auto& cut : strips.cuts())
    most = std::max(most, cut.rows * std::min(cut.most, cut.sets * cut.others));
  return epilogue.apart_bytes(most * std::min((2 * blocks.size + 1) * panels.lanes, panels.columns));
}

double Product::multiply_adds() const {
  double sum = 0;
  for (const auto& r : regions)
    for (auto s = cuts[r.cut]; s < cuts[r.cut + static_cast<std::size_t>(depth_blocks)]; ++s)
      sum += static_cast<double>(segments[s].length * r.width * r.lines);
  return sum * static_cast<double>(panels.columns * groups * units().in_word()) *
         static_cast<double>(batches.count());
}

/// Estimated from tiles: multiply-adds of whole vectors, what starts and ends a tile, and what each segment
/// costs.
Cost Product::cost(Family family, double calls) const {
  const double products = static_cast<double>(groups) * static_cast<double>(batches.count());
  const auto b_bytes = static_cast<double>(packed_floats() * units().cell) * products;
  if (points() == 1) {  // B is read once: memory decides, or L2
    const bool near = b_bytes < near_bytes(*machine);
    return calls_of(*machine, family, calls) + calls_of(*machine, Family::row_again, products - 1) +
           cost_of(*machine, near ? Family::near_row : Family::far_row, b_bytes / sizeof(float), 0, 0) +
           cost_of(*machine, Family::row_memory, 0, beyond_caches(*machine, b_bytes), 0);
  }
  double work = 0, tiles_run = 0, segments_run = 0;
  const std::int64_t least_rows = panels.count <= 1                              ? 4
                                  : b_bytes > nearest_bytes(*machine) * products ? 3
                                                                                 : 1;
  const auto most =
      static_cast<std::int64_t>(dots ? dot_shape(shape.lanes).rows[panels.columns] : shape.rows[2]);
  for (std::size_t i = 0; i < regions.size(); ++i) {
    const auto cut = regions[i].cut;
    const auto from = cuts[cut], to = cuts[cut + static_cast<std::size_t>(depth_blocks)];
    std::int64_t depth = 0;
    for (auto s = from; s < to; ++s)
      depth += dots ? ceil_div(segments[s].length, panels.lanes) : segments[s].length;
    const auto& c = strips.cuts()[i];
    for (const auto& [set_rows, sets] : {std::pair{c.rows, c.sets * c.others}, std::pair{c.rest, c.others}}) {
      if (set_rows == 0) continue;
      const auto parts = ceil_div(set_rows, most);
      // Few rows leave multiply-adds waiting for each other, or for B.
      const auto rows = std::max(set_rows, least_rows);
      work += static_cast<double>(sets * rows * depth);
      tiles_run += static_cast<double>(sets * (set_rows + parts) * depth_blocks);
      segments_run += static_cast<double>(sets * (set_rows + parts)) * static_cast<double>(to - from);
    }
  }
  // Lanes are summed at the end of dots, for each of their columns.
  const double columns = static_cast<double>(dots ? panels.columns * panels.lanes : panels.padded_columns());
  const double sums = dots ? static_cast<double>(panels.columns) : 0;
  const double steps = dots ? 1 : static_cast<double>(panels.count);
  // All sums once more.
  const double again = stages_last ? 8 * static_cast<double>(rows_of_c() * epilogue.out.channels) : 0;
  const double times = products * (threads_here() > 1 ? kSharing : 1);
  return cost_of(*machine, family, times * work * columns * static_cast<double>(units().in_word()), 0,
                 calls) +
         cost_of(*machine, Family::far_weights, 0, beyond_l2(*machine, b_bytes), 0) +
         cost_of(*machine, Family::product_row, times * steps * tiles_run, 0, 0) +
         cost_of(*machine, Family::product_sum, times * steps * sums * tiles_run, 0, 0) +
         cost_of(*machine, Family::product_segment, times * steps * segments_run, 0, 0) +
         move_cost(*machine, again, stages_last ? 1 : 0);
}

std::int64_t Product::bytes_of_panel() const {
  return std::max<std::int64_t>(1, panels.depth * 2 * panels.lanes * units().cell);
}

/// Panels that a task reads over and over stay in L2. Few rows read them once, several together. Lines are
/// read along, in tasks that stay short.
std::int64_t Product::panels_of_task(double panel_us) const {
  const auto near = block_bytes(*machine) / bytes_of_panel();
  if (points() > shape.rows[1]) return near;
  if (order != Order::lines) return std::max<std::int64_t>(4, near / 4 * 4);
  const auto most = kLineColumns / (2 * panels.lanes);
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(kLineTaskMicroseconds / (panel_us + 1e-9)), 4,
                                  most);
}

void Product::partition(std::int64_t threads) {
  const auto panel_bytes = bytes_of_panel();
  const auto panel_count = std::max<std::int64_t>(1, panels.count);
  const double together = static_cast<double>(groups) * static_cast<double>(batches.count());
  const double row_us =
      unit_costs(*machine, rate).work * multiply_adds() * static_cast<double>(panels.padded_columns()) /
      static_cast<double>(std::max<std::int64_t>(1, panels.columns * points() * panel_count)) /
      together;  // of one panel
  const double panel_us =
      std::max(row_us * static_cast<double>(points()),
               static_cast<double>(panel_bytes) / (kBytesPerMicrosecond * machine->rates.memory));
  const double total_us = together * static_cast<double>(panel_count) * panel_us;
  stages_last = wants_stages_last();
  blocks = even_parts(panel_count, panels_of_task(panel_us));
  cut_strips();
  const auto wanted = static_cast<double>(units_wanted(total_us, threads));
  cut_chunks(std::min(
      kTaskMicroseconds / (row_us * static_cast<double>(blocks.size) + 1e-9),
      static_cast<double>(points()) / std::max(1.0, wanted / together / static_cast<double>(blocks.number))));
  const auto have = [&] { return static_cast<std::int64_t>(chunks.size() - 1) * groups * batches.count(); };
  // Few rows although there is work for threads: cut the columns.
  const double missing = wanted / static_cast<double>(have() * blocks.number);
  if (missing >= 2)
    blocks = even_parts(panel_count, static_cast<std::int64_t>(static_cast<double>(blocks.size) / missing));
  rows_first = static_cast<double>(groups * packed_floats() * units().cell) <= near_bytes(*machine);
  const auto count = have() * blocks.number;
  tasks = partition_work(count, total_us / static_cast<double>(std::max<std::int64_t>(1, count)), threads);
  if (!stages_last) return;
  const auto rows = rows_of_c();
  const auto us = epilogue.stages->cost(*machine).us() / static_cast<double>(std::max<std::int64_t>(1, rows));
  last = partition_work(rows, us, threads);
  all_rows = Rows(ElementType::f32, Layout::plain, epilogue.out.channels);
}

Product plain_product(const Machine& machine, std::int64_t rows, std::int64_t depth, std::int64_t columns,
                      std::int64_t a_row, const Epilogue& epilogue, Order order) {
  Product p(machine, depth, columns, depth);
  p.order = order;
  if (order != Order::panels) p.dots = false;
  Region region;
  region.width = rows;
  region.a_step = a_row;
  p.epilogue = epilogue;
  p.add_region(region, {{0, 0, depth}});
  return p;
}

}  // namespace lamina::gemm
