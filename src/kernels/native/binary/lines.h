#pragma once
/// Binary convolution, channels-last: packs signs to bits and counts where they differ from those of the
/// weights. A difference counts 2: the sum of b products of +1 and -1 is b - 2 * differences. (Depthwise:
/// depthwise_lines.h.)
///
/// A point's channels are packed in units that a kernel reads at once:
///   lookup     4 channels in a byte, times 16: the byte is the place of a table that has, for each of the 16
///              signs of 4 weights, how many differ. A vector of bytes holds the weights of as many outputs.
///   popcount   32 channels in a word, for processors that count the bits of words (VPOPCNTDQ).
/// Outside of the picture and in channels that fill up a unit all bits are 0.
///
/// Byte k of float j of a vector of bytes is output `k * floats + j`: a mask makes counts of neighbours
/// numbers of 32 bits, without a shuffle.
#include <cstdint>

#include "base/machine.h"
#include "kernels/native/simd/finish.h"

namespace lamina::binary {

/// Units of a point that follow each other, `offset` bytes behind the window's first.
struct Segment {
  std::int64_t offset, units;
  bool flush;  ///< bytes that count are full behind it, or it is the last
};

/// Some points by one panel of outputs.
struct Tile {
  const std::uint8_t* const* x;   ///< per point: its window
  const float* const* start;      ///< per point: what the counts are taken from, by output
  std::int64_t x_add, start_add;  ///< to all of them: the group's bytes, the panel's first output
  const std::uint8_t* w;          ///< [vector][unit][lane]
  std::int64_t w_vector;          ///< bytes of a vector of outputs
  const Segment* segments;
  std::int64_t segment_count;
  float* out;  ///< the first point, at the panel's first output
  std::int64_t out_step;
  const float* add;  ///< added before the finish, or null; lies like out, but for add_step
  std::int64_t add_step;
  std::int64_t channels;  ///< outputs to store
  Finish finish;
  /// Instead of `out`: booleans, what is above 0; as far from each other. Lookup needs to know by point how
  /// many differences are too many, in the order of its counts (Packing::limits).
  std::uint8_t* signs;
  const std::uint16_t* const* limit;
  bool bits;  ///< of the signs, of which the first begins a byte; the step is of bytes
  /// Instead of `out`: integers of 8 bits, as `byte_finish` makes them of the sums; as far from each other.
  std::uint8_t* bytes;
  const IntegerFinish* byte_finish;  ///< a simple one
  std::int64_t first;                ///< output of the panel's first
};

/// Points to pack, `step` elements from each other: floats, or booleans of a byte.
struct Points {
  const void* in;
  bool booleans;
  std::int64_t step, count;
  std::int64_t groups, channels;  ///< channels of a group
  std::uint8_t* out;
  std::int64_t out_step;  ///< bytes of a packed point
  /// Booleans in Layout::channels_last_bits, where steps count whole words. Groups begin with whole bytes or,
  /// for popcount, words.
  bool bits;
};

using Kernel = void (*)(const Tile&);

inline constexpr int kMostPoints = 8, kMostVectors = 4;
/// Differences that a kernel counts at most, but for those of `many`.
inline constexpr std::int64_t kMostCounted = 65535;
/// Products whose sum is exact in f32 with what a border adds to it.
inline constexpr std::int64_t kMostExact = (1 << 24) / 3;

/// One way to compute, on one instruction set.
struct Kernels {
  const char* name;
  int lanes;          ///< outputs of a vector
  int floats;         ///< in a vector
  int unit_channels;  ///< of a packed point
  int unit_bytes;
  std::int64_t most_units;  ///< of all segments up to one that flushes; 0: as many as one likes
  int vectors;              ///< most vectors of a panel
  int points;               ///< most points of a kernel
  double speed;             ///< about how many channels and outputs a cycle
  Kernel kernels[kMostVectors + 1][kMostPoints + 1];  ///< [vectors][points]
  Kernel many[kMostPoints + 1];                       ///< one vector, more differences than kMostCounted
  void (*pack)(const Points&);

  /// Where an output of a vector lies in it.
  int lane(int output) const { return output % floats * (lanes / floats) + output / floats; }
};

/// By lookup, with the vectors up to that level that suit so many outputs.
const Kernels& lookup_kernels(Isa isa, std::int64_t outputs);
/// By counting words; null when the machine does not have that.
const Kernels* popcount_kernels(const Machine& machine);

}  // namespace lamina::binary
