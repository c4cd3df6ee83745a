#pragma once
/// Binary convolution with one input channel per output: bits are counted where they lie, in many channels at
/// once. The counts of all taps are bit planes, added by full adders of and, xor and or.
///
/// A vector of F words of 32 bits holds, of a block of channels, bit `b` of word `j` for channel `b * F + j`.
/// A block of few channels leaves bits free: they hold points to the right, one per slot, so that a vector
/// has windows of several outputs at once. Slot s begins at bit `s * bits` and is the point `s * stride`
/// further; what is left of a word tells nothing. Outside of the picture all bits are 0. Of blocks with many
/// slots only those vectors are packed at which windows begin: for each `slots` outputs one per tap of a
/// line.
#include <cstdint>

#include "base/cpu.h"
#include "kernels/native/simd/finish.h"

namespace lamina::binary {

/// Channels that share a vector.
struct Block {
  std::int64_t first, channels;
  std::int64_t bits, slots;  ///< of a word, for one point; points
};

/// A line of a picture to pack.
struct DepthwiseLine {
  Block block;
  /// The block's first channel of the first point; null: a line outside of the picture.
  const void* in;
  bool booleans;                ///< of a byte, instead of floats
  std::int64_t in_step, count;  ///< elements from point to point; points
  std::int64_t left, points;    ///< points before the first, and all of the packed line
  std::int64_t stride;          ///< points from output to output
  /// For lines of windows: `taps` is 0 for a vector per point; else there is one word per tap for each
  /// `slots` of these outputs.
  std::int64_t taps, outputs, dilation;
  std::uint8_t* out;
  bool bits;  ///< booleans in Layout::channels_last_bits; steps count whole words
};

/// A row of outputs.
struct DepthwiseRow {
  Block block;
  const std::uint8_t* x;      ///< window of the first output
  std::int64_t x_step;        ///< bytes from a vector of outputs to the next
  std::int64_t count;         ///< outputs
  const std::int64_t* taps;   ///< bytes behind the window's first
  std::int64_t tap_count;     ///< at most kMostDepthwiseTaps
  const std::uint8_t* w;      ///< a vector per tap
  const float* start;         ///< what counts are taken from, by channel of the block,
  const std::int64_t* kinds;  ///< so many floats further, by output
  float* out;                 ///< the block's first channel of the first output
  std::int64_t out_step;
  const float* add;  ///< added before the finish, or null; lies like out, but for add_step
  std::int64_t add_step;
  Finish finish;
  std::uint8_t* signs;  ///< instead of `out`: booleans, what is above 0; as far from each other, in bytes
  bool bits;            ///< of the signs
};

struct DepthwiseKernels {
  const char* name;
  int floats;    ///< in a vector
  double speed;  ///< about how many channels and taps a cycle
  void (*pack)(const DepthwiseLine&);
  void (*row)(const DepthwiseRow&);
  std::int64_t bytes() const { return 4 * floats; }  ///< of a vector
};

inline constexpr std::int64_t kMostDepthwiseTaps = 127;

/// With the vectors up to that level that suit so many channels.
const DepthwiseKernels& depthwise_kernels(Isa isa, std::int64_t channels);

}  // namespace lamina::binary
