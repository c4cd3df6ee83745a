#pragma once
/// Products C = A x B where A's rows lie anywhere: matrix products, 1x1 convolutions, and convolutions
/// whose rows are output positions and whose k runs over taps and channels, without copying the input.
///
/// B is packed in panels of two vectors of columns, [panel][k][columns of the panel], with zeros behind the
/// last column. When the number of vectors is odd, the first panel has three (or one, when that is all).
///
/// Operands are f32, or integers with sums of i32 (Arithmetic): then a k is a word of several numbers, places
/// in A count these, and those in B cells: what B has for a k and a column.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/work_partition.h"
#include "kernels/cost.h"
#include "kernels/family.h"
#include "kernels/native/gemm/matched_order.h"
#include "kernels/native/gemm/strips.h"
#include "kernels/native/gemm/thin.h"
#include "kernels/native/gemm/tiles.h"
#include "kernels/native/move/positions.h"
#include "kernels/native/stages/epilogue.h"

namespace lamina::gemm {

/// How the columns of B are cut into panels.
struct Panels {
  std::int64_t columns = 0, depth = 0;
  std::int64_t lanes = 1, first = 1;  ///< floats in a vector; vectors of the first panel
  std::int64_t count = 0;
  std::int64_t stored = 0;  ///< k of B, where it has others than A; or 0

  std::int64_t rows() const { return stored != 0 ? stored : depth; }
  std::int64_t vectors(std::int64_t panel) const { return panel == 0 ? first : 2; }
  std::int64_t column(std::int64_t panel) const { return panel == 0 ? 0 : (first + 2 * (panel - 1)) * lanes; }
  std::int64_t offset(std::int64_t panel) const { return column(panel) * rows(); }
  std::int64_t padded_columns() const { return column(count); }
  std::int64_t floats() const { return offset(count); }
};
Panels panels_of(std::int64_t lanes, std::int64_t columns, std::int64_t depth);

/// Everything about a product but the data. With few columns, B is packed as one list of k per column and
/// vectors run along k (dots.h).
struct Product {
  /// `run`: how many floats of k lie together in A, which decides about vectors along k. The machine outlives
  /// the product.
  Product(const Machine& machine, std::int64_t depth, std::int64_t columns, std::int64_t run);
  /// A product of integers, `depth` words deep; `rate`: the cost of a unit of work.
  Product(const Machine& machine, Arithmetic arithmetic, Family rate, std::int64_t depth,
          std::int64_t columns);

  /// Packs rows [first, first + count) of one group's B: b[k][j] = from[(k - first) * row + j * column].
  void pack(std::int64_t first, std::int64_t count, const float* from, std::int64_t row, std::int64_t column,
            float* to) const;
  /// Packs one group's B from a constant at any address, lets go of pages of mapped files as they are read.
  void pack_constant(const std::byte* from, std::int64_t row, std::int64_t column, float* to) const;
  Units units() const { return units_of(arithmetic); }
  /// Cells of one group's packed B.
  std::int64_t packed_floats() const {
    return dots || order != Order::panels ? panels.columns * panels.depth : panels.floats();
  }

  /// `segments` by ascending k.
  void add_region(Region region, const std::vector<Segment>& segments);
  /// Cuts regions into strips and the work into tasks for so many threads; call last.
  void partition(std::int64_t threads);
  std::int64_t points() const;  ///< rows of C of one batch
  double multiply_adds() const;
  /// What Operands::apart has: for all slots, then for all sums where stages run last.
  std::int64_t scratch_bytes() const { return tasks.slots * apart_bytes() + all_sums_bytes(); }
  /// For sums that lie apart, and rows of A in another order, of one slot.
  std::int64_t apart_bytes() const { return sums_bytes() + matched_bytes(); }
  std::int64_t sums_bytes() const;
  std::int64_t all_sums_bytes() const;
  /// From one of these rows to the next.
  std::int64_t matched_row() const {
    constexpr auto kGrows = MatchedOrder::kMostWords / MatchedOrder::kLeastWords;
    return round_up(kGrows * kWordBytes * panels.depth + kMatchedSlack, 64);
  }
  std::int64_t matched_bytes() const;
  /// Estimated, on one thread, with so many calls; without epilogue and packing.
  Cost cost(Family family = Family::native_gemm, double calls = 1) const;

  const Machine* machine;
  Arithmetic arithmetic = Arithmetic::floats;
  Family rate = Family::native_gemm;
  TileShape shape;
  Panels panels;
  bool dots = false;
  Order order = Order::panels;  ///< before add_region(); others than panels: one segment, no dots
  std::vector<Segment> segments;
  std::vector<Region> regions;
  Positions<3> batches;  ///< products of equal shape: where their A and B lie, and C, in rows
  /// Groups split the columns of C: group g reads A at + g * a_group and writes C from column g * columns on;
  /// its B follows that of group g - 1.
  std::int64_t groups = 1, a_group = 0;
  std::int64_t bias_b = 0;                    ///< sums of Operands::bias from one matrix of B to the next
  std::optional<MatchedOrder> matched_order;  ///< of matched quads
  Epilogue epilogue;                          ///< of the node; its rows are those of C. Before add_region().

  // Set by add_region() and partition().
  std::int64_t depth_blocks = 1;  ///< k is summed in so many parts
  std::vector<std::size_t> cuts;  ///< depth_blocks + 1 bounds in `segments` per region
  Strips strips;
  Parts blocks;                      ///< panels of a task
  std::vector<std::int64_t> chunks;  ///< bounds of the strips of tasks
  /// Neighbouring tasks share their rows: each thread writes its own lines of C, and finds them in its cache
  /// afterwards. Else they share panels, because all of B would not stay in L2.
  bool rows_first = false;
  WorkPartition tasks;
  /// Stages run over whole points when all sums are there: tasks have few columns of points, or points far
  /// from each other, for which stages would run one by one.
  bool stages_last = false;
  WorkPartition last;  ///< of rows of C
  Rows all_rows;       ///< how sums lie then that have no room in the output

 private:
  bool wants_stages_last() const;
  std::int64_t bytes_of_panel() const;
  std::int64_t panels_of_task(double panel_us) const;
  WorkPartition packing_lists() const;
  void pack_lists(std::int64_t block, std::int64_t first, std::int64_t count, const float* from,
                  std::int64_t row, std::int64_t column, float* to) const;
  std::int64_t rows_of_c() const { return points() * batches.count(); }
  void cut_strips();
  void cut_chunks(double rows);
};

/// The product of a matrix with `rows` rows, `a_row` floats apart, with a packed B. Not yet divided.
Product plain_product(const Machine& machine, std::int64_t rows, std::int64_t depth, std::int64_t columns,
                      std::int64_t a_row, const Epilogue& epilogue, Order order = Order::panels);

struct Operands {
  const void* a;
  const void* b;
  /// 0: b is packed. Else its rows lie as they are, `b_row` floats apart; in panels, columns % lanes must
  /// be 0. Of lists or lines, floats from one to the next.
  std::int64_t b_row = 0;
  /// Lists of sums of padded_columns() for each group, or none: what each region begins with.
  const void* bias = nullptr;
  const void* add = nullptr;  ///< added before the finish, as Epilogue::added lies
  void* c = nullptr;
  const void* const* inputs = nullptr;  ///< of the node, for stages
  std::int64_t first = 0;               ///< element of the output that is C's first, for stages
  std::byte* apart = nullptr;           ///< Product::scratch_bytes()
};

/// Runs on the threads of the current arena; allocates nothing.
void run(const Product& product, const Operands& operands);
/// Runs panels [first, last) of a product with one batch and one group on the calling thread. `stages`: those
/// of its epilogue, or null.
void run_panels(const Product& product, const Operands& operands, std::int64_t first, std::int64_t last,
                StageRun* stages);

}  // namespace lamina::gemm
