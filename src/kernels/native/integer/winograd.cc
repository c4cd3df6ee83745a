#include "kernels/native/integer/winograd.h"

#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "kernels/native/integer/winograd_loops.h"
#include "kernels/native/integer/winograd_weights.h"
#include "kernels/native/stages/sum_rows.h"

namespace lamina::integers {
namespace {

using windows::Geometry;

/// Tiles of a task, at most: weights are read once for all of them.
constexpr std::int64_t kMostTiles = 48;
constexpr std::int64_t kOutputs = kWinogradOutputs * kWinogradOutputs;
/// What transforms cost for a channel of a tile, in multiply-adds of the products.
constexpr double kInputWork = 190, kOutputWork = 400;
/// Further work for a remainder of channels that fills no vector and is read number by number.
constexpr double kPartWork = 40000;
/// What weights must gain that are 8 times as large as direct ones and stay in no near cache: else loading
/// and memory would pay for little.
constexpr double kFarGain = 1.5;

struct Winograd {
  Winograd(const Machine& machine, const Geometry& geometry, const Operands& what, const Epilogue& behind);

  Geometry g;
  WinogradWeights weights;
  Epilogue epilogue;
  Rows in;
  gemm::TileShape shape;
  std::int64_t across, tiles;  ///< of a picture: in a line of tiles, and all
  Parts blocks, parts;         ///< of tiles, and of panels
  WorkPartition tasks;
  bool far;  ///< weights do not stay in L2
  Cost cost;
  Tensor packed;

  std::int64_t channels() const { return round_up(g.inputs, 2 * weights.lanes); }  ///< with zeros behind
  /// From place to place, for so many tiles; not whole pages, which would share few lines of L1.
  std::int64_t plane(std::int64_t tiles_here) const { return tiles_here * channels() + 32; }
  std::int64_t columns() const { return std::min<std::int64_t>(2, weights.vectors(0)) * weights.lanes; }
  /// Scratch of a slot: transformed inputs, their products, outputs of a panel, what stands around pictures.
  std::int64_t inputs_bytes() const { return kWinogradPlaces * plane(blocks.size) * 2; }
  std::int64_t sums_bytes() const { return kWinogradPlaces * blocks.size * columns() * 4; }
  std::int64_t outputs_bytes() const { return kOutputs * blocks.size * columns() * 4; }
  std::int64_t apart_bytes() const { return epilogue.apart_bytes(kOutputs * blocks.size * g.outputs); }
  std::int64_t slot_bytes() const {
    return round_up(inputs_bytes() + sums_bytes() + outputs_bytes() + channels() + apart_bytes(), 64);
  }
};

Winograd::Winograd(const Machine& machine, const Geometry& geometry, const Operands& what,
                   const Epilogue& behind)
    : g(geometry),
      weights{what, g.inputs, g.outputs, gemm::lanes_of(machine.isa())},
      epilogue(behind),
      in(what.signed_source ? ElementType::i8 : ElementType::u8, Layout::channels_last, g.inputs),
      shape(gemm::tile_shape(static_cast<int>(weights.lanes))),
      across(ceil_div(g.out[2], std::int64_t{kWinogradOutputs})),
      tiles(across * ceil_div(g.out[1], std::int64_t{kWinogradOutputs})),
      far(weights.bytes() > static_cast<std::int64_t>(machine.l2) / 2) {
  const auto tile_bytes = kWinogradPlaces * (2 * channels() + 4 * columns()) + kOutputs * columns() * 4;
  const auto fit = static_cast<std::int64_t>(machine.l2) / 2 / tile_bytes;
  blocks = even_parts(tiles, std::clamp<std::int64_t>(fit, shape.rows[2], kMostTiles));
  const auto total = static_cast<double>(g.images * tiles);
  const auto columns_work = static_cast<double>(weights.panels() * columns());
  cost =
      cost_of(machine, Family::native_int8,
              total * (columns_work *
                           (2.0 * kWinogradPlaces * static_cast<double>(weights.words()) + kOutputWork) +
                       static_cast<double>(channels()) * kInputWork +
                       (channels() != g.inputs && machine.isa() != Isa::avx512 ? kPartWork : 0))) +
      cost_of(machine, Family::far_weights, 0, beyond_l2(machine, static_cast<double>(weights.bytes())), 0);
  const auto threads = threads_here();
  const auto wanted = units_wanted(cost.us(), threads), have = g.images * blocks.number;
  parts = even_parts(weights.panels(), ceil_div(weights.panels(), std::max<std::int64_t>(1, wanted / have)));
  const auto units = have * parts.number;
  tasks = partition_work(units, cost.us() / static_cast<double>(units), threads);
}

/// Some tiles of a picture by some panels.
class Task {
 public:
  Task(const Winograd& w, const RunArgs& args, std::int64_t index, std::byte* memory)
      : w_(w), args_(args), image_(index / w.parts.number / w.blocks.number) {
    const auto part = index % w.parts.number, block = index / w.parts.number % w.blocks.number;
    first_panel_ = part * w.parts.size;
    last_panel_ = std::min(first_panel_ + w.parts.size, w.weights.panels());
    first_tile_ = block * w.blocks.size;
    count_ = std::min(w.blocks.size, w.tiles - first_tile_);
    const auto take = [&memory](std::int64_t bytes) {
      auto* at = memory;
      memory += bytes;
      return at;
    };
    inputs_ = reinterpret_cast<std::int16_t*>(take(w.inputs_bytes()));
    sums_ = reinterpret_cast<std::int32_t*>(take(w.sums_bytes()));
    outputs_ = reinterpret_cast<std::int32_t*>(take(w.outputs_bytes()));
    apart_ = take(w.apart_bytes());
    around_ = reinterpret_cast<std::uint8_t*>(memory);
  }

  void run(StageRun* stages) {
    transform_inputs();
    for (auto panel = first_panel_; panel < last_panel_; ++panel) {
      multiply(panel);
      each_run([&](const Run& run) { finish(run, panel); });
    }
    if (!stages) return;
    each_run([&](const Run& run) {
      for (std::int64_t y = 0; y < run.lines; ++y) sums_of(run, y).apply(*stages);
    });
  }

 private:
  /// Tiles side by side: the first of the task's, their number, their first output and how many there are.
  struct Run {
    std::int64_t tile, count, line, column, lines, points;
  };

  template <class F>
  void each_run(const F& f) const {
    constexpr std::int64_t side = kWinogradOutputs;
    for (std::int64_t t = 0; t < count_;) {
      const auto x = (first_tile_ + t) % w_.across, y = (first_tile_ + t) / w_.across;
      const auto n = std::min(w_.across - x, count_ - t);
      f(Run{t, n, y * side, x * side, std::min(side, w_.g.out[1] - y * side),
            std::min(n * side, w_.g.out[2] - x * side)});
      t += n;
    }
  }

  void transform_inputs() {
    const auto& g = w_.g;
    const auto& o = w_.weights.operands;
    const auto zero = o.zero(o.zero_at_run ? args_.in[3] : nullptr);
    const auto transform = winograd_loops().inputs[o.signed_source ? 1 : 0];
    const auto* picture = w_.in.at<const std::uint8_t>(args_.in[0], image_ * g.in_points());
    std::memset(around_, zero, static_cast<std::size_t>(g.inputs));
    for (std::int64_t t = 0; t < count_; ++t) {
      const auto y = (first_tile_ + t) / w_.across * kWinogradOutputs - g.pad[1],
                 x = (first_tile_ + t) % w_.across * kWinogradOutputs - g.pad[2];
      const std::uint8_t* points[kWinogradPlaces];
      for (int p = 0; p < kWinogradPlaces; ++p) {
        const auto py = y + p / kWinogradInputs, px = x + p % kWinogradInputs;
        const bool inside = py >= 0 && py < g.in[1] && px >= 0 && px < g.in[2];
        points[p] = inside ? picture + (py * g.in[2] + px) * w_.in.step : around_;
      }
      transform(points, g.inputs, zero, inputs_ + t * w_.channels(), w_.plane(count_));
    }
  }

  /// Products of all places with a panel of weights.
  void multiply(std::int64_t panel) {
    const auto vectors = w_.weights.vectors(panel), width = vectors * w_.weights.lanes,
               words = w_.weights.words();
    const auto rows = even_parts(count_, w_.shape.rows[vectors]);
    const auto& kernels = gemm::tiles(gemm::Arithmetic::wide_pairs).kernels[vectors];
    const gemm::Segment all{0, 0, words};
    gemm::Tile t{};
    t.segments = &all;
    t.segment_count = 1;
    t.b_row = 4 * width;
    t.steps = 1;
    t.columns = width;
    t.last = true;
    t.a_step = 2 * w_.channels();
    t.c_step = 4 * width;
    t.a_move = rows.size * t.a_step;
    t.c_move = rows.size * t.c_step;
    const auto sets = count_ / rows.size, rest = count_ % rows.size;
    const bool ahead = w_.far && count_ > rows.size;  // few rows only wait for memory
    t.ahead_move = std::max<std::int64_t>(64, 4 * t.b_row / sets);
    for (std::int64_t place = 0; place < kWinogradPlaces; ++place) {
      t.a = reinterpret_cast<const std::byte*>(inputs_ + place * w_.plane(count_));
      t.b = reinterpret_cast<const std::byte*>(w_.packed.raw()) + 4 * w_.weights.offset(panel) +
            place * words * t.b_row;
      t.c = reinterpret_cast<std::byte*>(sums_) + place * count_ * t.c_step;
      t.repeat = sets;
      t.ahead = ahead ? t.b + words * t.b_row : nullptr;
      kernels[rows.size](t);
      if (rest == 0) continue;
      t.a += sets * t.a_move;
      t.c += sets * t.c_move;
      t.repeat = 1;
      t.ahead = nullptr;
      kernels[rest](t);
    }
  }

  /// All of the task's channels of a line of outputs.
  Sums sums_of(const Run& run, std::int64_t y) const {
    const auto& g = w_.g;
    const auto first = column(first_panel_), channels = column(last_panel_) - first;
    const Patch patch{(image_ * g.out[1] + run.line + y) * g.out[2] + run.column, run.points, first,
                      channels};
    const auto at = (run.tile * kWinogradOutputs + y * run.count) * kWinogradOutputs;
    return w_.epilogue.sums(args_.out[0], patch, apart_ + 4 * at * channels);
  }
  std::int64_t column(std::int64_t panel) const {
    return std::min(2 * panel * w_.weights.lanes, w_.g.outputs);
  }

  /// Outputs of a panel.
  void finish(const Run& run, std::int64_t panel) {
    const auto vectors = w_.weights.vectors(panel), width = vectors * w_.weights.lanes;
    const auto line = run.count * kWinogradOutputs * width;
    for (std::int64_t t = 0; t < run.count; ++t)
      winograd_loops().outputs(sums_ + (run.tile + t) * width, count_ * width, vectors,
                               outputs_ + t * kWinogradOutputs * width, line);
    const auto finish = w_.epilogue.integer_finish();
    const auto first = column(panel);
    for (std::int64_t y = 0; y < run.lines; ++y) {
      const auto sums = sums_of(run, y);
      const auto point = (image_ * w_.g.out[1] + run.line + y) * w_.g.out[2] + run.column;
      const auto& added = w_.epilogue.added;
      finish_rows(
          finish,
          {outputs_ + y * line, width, sums.memory() + (first - column(first_panel_)) * finish.stored_bytes(),
           sums.row_bytes(), static_cast<const std::byte*>(w_.epilogue.added_at(args_, point, first)),
           added.bytes(added.step), run.points, first, column(panel + 1) - first});
    }
  }

  const Winograd& w_;
  const RunArgs& args_;
  std::int64_t image_, first_panel_, last_panel_, first_tile_, count_;
  std::int16_t* inputs_;
  std::int32_t *sums_, *outputs_;
  std::byte* apart_;
  std::uint8_t* around_;
};

void run(const Winograd& w, const RunArgs& args) {
  w.epilogue.run(args.in, w.tasks, [&](auto begin, auto end, auto slot, StageRun* stages) {
    auto* memory = static_cast<std::byte*>(args.scratch) + slot * w.slot_bytes();
    for (auto i = begin; i < end; ++i) Task(w, args, i, memory).run(stages);
  });
}

bool takes(const NodeView& v, const Geometry& g) {
  using windows::Triple;
  const Triple ones{1, 1, 1};
  return v.constant(1) && v.element(1) != ElementType::i16 && !g.transposed && g.groups == 1 &&
         g.kernel == Triple{1, 3, 3} && g.stride == ones && g.dilation == ones && g.in[0] == 1 &&
         g.out[0] == 1 && g.pad[0] == 0 && !gemm::multiplies_quads(v.machine());
}

}  // namespace

std::optional<Offer> winograd_offer(const NodeView& v, const Geometry& g,
                                    const std::vector<Operands>& possible, const Epilogue& epilogue,
                                    const Offer& direct) {
  if (!takes(v, g)) return std::nullopt;
  auto operands = possible.front();
  operands.arithmetic = gemm::Arithmetic::wide_pairs;
  const Winograd made(v.machine(), g, operands, epilogue);
  Offer behind;
  epilogue.add_to(behind, v);
  Offer o = direct;
  o.label = fmt::format("native_winograd_{}", operands.label(v.machine()));
  o.cost = behind.cost + made.cost;
  if (made.far && o.cost.us() * kFarGain > direct.cost.us()) return std::nullopt;
  o.scratch = std::max(direct.scratch, static_cast<std::size_t>(made.tasks.slots * made.slot_bytes()));
  const auto weights = *v.constant(1);
  o.make = [made, weights, otherwise = direct.make,
            label = direct.label](MakeContext& context) -> std::unique_ptr<Executable> {
    if (!made.weights.fit(weights, context.weights)) {
      context.label = label;
      return otherwise(context);
    }
    auto w = made;
    w.in = context.input(0, w.in);
    w.epilogue.lay(context);
    w.packed = w.weights.packed(weights, context.weights);
    return executable([w = std::move(w)](const RunArgs& args) { run(w, args); });
  };
  return o;
}

}  // namespace lamina::integers
