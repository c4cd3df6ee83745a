#pragma once
/// Rows of a product in the order in which they are made. Strips are counted, not listed: a batch may have
/// millions of rows.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace lamina::gemm {

/// Rows of A and C that share their segments: points of a rectangle, numbered line by line.
struct Region {
  std::int64_t width = 1, lines = 1;                 ///< points in a line; lines
  std::int64_t a_first = 0, a_line = 0, a_step = 0;  ///< elements: of point 0, between lines, in a line
  std::int64_t c_first = 0, c_line = 0, c_step = 1;  ///< positions in C, in its rows
  std::size_t cut = 0;                               ///< first of its Product::cuts
  std::int64_t bias = 0;                             ///< which list of Operands::bias is its own
};

/// `repeat` sets of `rows` points of a region, side by side (`down`: one below the other), the first set from
/// (line, column) on, each of the others so many lines and columns behind the one before.
struct Strip {
  std::size_t region;
  bool down;
  std::int64_t line, column, rows, repeat, line_move, column_move;
};

/// A region in strips. Rows of A run along its longer side; each line of points in this direction is `sets`
/// of `rows` points and `rest` that are done apart. Strips of `together` lines make a group: line after line
/// where lines have several sets, else all sets of the group at once, and the rests of the group last.
struct Cut {
  /// `most`: sets of a strip.
  Cut(const Region& region, const std::function<std::int64_t(std::int64_t)>& rows_of_length,
      std::int64_t most);

  std::int64_t lines_of(std::int64_t group) const { return std::min(together, others - group * together); }
  /// Strips of a group of so many lines, without and with that of the rests.
  std::int64_t whole(std::int64_t lines) const { return sets == 1 ? 1 : lines * per_line; }
  std::int64_t all(std::int64_t lines) const { return whole(lines) + (rest != 0 ? 1 : 0); }
  std::int64_t strips() const;
  /// The strip that has this point, in the order of the strips.
  std::int64_t strip_at(std::int64_t point) const;

  bool down;
  std::int64_t length, others;  ///< points of a line in the direction of the rows; such lines
  std::int64_t rows, sets, rest;
  std::int64_t most, per_line, together;  ///< per_line: strips of a line of several sets
};

/// All regions of a product.
class Strips {
 public:
  void add(const Cut& cut);
  std::int64_t count() const { return count_; }
  std::int64_t points() const { return points_; }
  const std::vector<Cut>& cuts() const { return cuts_; }
  /// The strip with which piece `index` of `pieces` begins that have about as many points.
  std::int64_t bound(std::int64_t index, std::int64_t pieces) const;

 private:
  friend class StripWalk;
  std::vector<Cut> cuts_;  ///< by region
  std::vector<std::int64_t> first_strip_, first_point_;
  std::int64_t count_ = 0, points_ = 0;
};

/// Strips one after the other.
class StripWalk {
 public:
  StripWalk(const Strips& strips, std::int64_t first);
  Strip next();

 private:
  void enter(std::int64_t group);

  const std::vector<Cut>& cuts_;
  std::size_t region_ = 0;
  std::int64_t group_ = 0, lines_ = 0;  ///< of the region; of the group
  std::int64_t at_ = 0;                 ///< strip of the group
  std::int64_t line_ = 0, part_ = 0;    ///< of the group; strip of that line
};

}  // namespace lamina::gemm
