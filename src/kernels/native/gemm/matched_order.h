#pragma once
/// A's numbers in another order for each group of columns, for which rows of A are copied strip by strip: so
/// pairs of them can be multiplied that are safe with all weights of the group.
#include <cstddef>
#include <cstdint>

namespace lamina::gemm {

/// Numbers stay in their windows of 16: those that lie together are cut into such, the last of which reaches
/// back into the one before where they do not fill it, and has only what that has not. Those of a window
/// become up to eight words, four of a whole one at least.
struct MatchedOrder {
  static constexpr std::int64_t kWindow = 16, kLeastWords = 4, kMostWords = 8;

  std::int64_t windows = 0;  ///< of k
  std::int64_t run = 1;      ///< windows of numbers that lie together
  std::int64_t back = 0;     ///< numbers of the window before that the last one of a run begins with
  std::int64_t panels = 1;   ///< of a group of columns
  std::int64_t groups = 1;   ///< of columns, of one group of the product
  /// For each group its first word of each window, and behind the last: windows + 1.
  const std::int32_t* starts = nullptr;
  /// For each group, of the first four words of each window and then of the others: for each byte its place
  /// in the window, or 0x80 for a zero.
  const std::uint8_t* places = nullptr;

  const std::int32_t* starts_of(std::int64_t group) const { return starts + group * (windows + 1); }
  const std::uint8_t* places_of(std::int64_t group) const { return places + group * 2 * windows * kWindow; }
};

/// Some rows of A, and where they go; bytes from one to the next.
struct MatchedRows {
  const std::byte* from;
  std::int64_t from_step;
  std::byte* to;
  std::int64_t to_step, count;
};
struct MatchedOrderLoops {
  /// Copies windows [first, first + count) of the rows, which begin there.
  void (*copy)(const MatchedOrder& order, std::int64_t group, std::int64_t first, std::int64_t count,
               const MatchedRows& rows);
};
/// Segments of A's rows, at most.
inline constexpr std::int64_t kMostMatchedSegments = 64;
/// What is written behind a row, at most.
inline constexpr std::int64_t kMatchedSlack = 16;
/// The loops for the effective instruction set.
const MatchedOrderLoops& matched_order_loops();

}  // namespace lamina::gemm
