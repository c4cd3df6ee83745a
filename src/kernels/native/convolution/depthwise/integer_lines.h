#pragma once
/// Depthwise convolution of integers of 8 bits, channels-last: lines of outputs for some vectors of channels.
/// Compiled once per instruction set (simd/per_isa.h).
///
/// Taps below each other are multiplied at once: two of 16 bits, or four of 8 bits where the processor has
/// VNNI. They are the rows of a group; a word has those of a channel.
#include <cstddef>
#include <cstdint>

#include "base/machine.h"
#include "kernels/native/simd/finish.h"

namespace lamina::depthwise {

struct IntegerLines {
  const std::uint8_t* in;  ///< the picture's first point, at the first channel
  std::int64_t in_height, in_width;
  std::int64_t in_point, in_line;  ///< bytes from point to point and from line to line
  /// 0x80 in each byte makes unsigned bytes of signed ones, and zero points 128 more; 0: they are unsigned.
  std::uint32_t flip;
  std::uint8_t outside[16];         ///< what stands around the picture: its zero point, in memory
  std::int32_t zero_point;          ///< of unsigned bytes
  const std::int32_t* weights;      ///< [vector][group][line][tap along it][lanes]
  const std::int32_t* weight_sums;  ///< [vector][lanes]
  std::int64_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, top, left;
  std::byte* out;        ///< the first point of line `first`, at the first channel
  const std::byte* add;  ///< the same of the second tensor, or null
  std::int64_t out_width, out_size, out_point, out_line;  ///< bytes of an element, from point to point, ...
  std::int64_t add_size, add_point, add_line;
  std::int64_t first, count;    ///< lines
  std::int64_t vectors;         ///< of channels
  std::int64_t last, channels;  ///< as Lines has them
  std::int64_t channel;         ///< the first
  IntegerFinish finish;
};

struct IntegerKernels {
  using Run = void (*)(const IntegerLines&);
  const char* name;
  std::int64_t lanes, rows;  ///< of a vector, and of a group
  Run any;                   ///< takes any window
  Run part;                  ///< any window, fewer channels than lanes, or null
  // Any height of the window; dilation 1 along the line. Two lines at once: strides and dilations 1.
  Run three, five;
  Run three_by_two, five_by_two;  ///< any stride and dilation from line to line, stride 2 along it
};
/// Lines that `three` and `five` make at once, for which they want weights.
inline constexpr std::int64_t kLinesAtOnce = 2;

/// Those of the widest vectors of that machine that `channels` fill. `bytes`: weights are of 8 bits, with
/// sign.
const IntegerKernels& integer_kernels_for(const Machine& machine, std::int64_t channels, bool bytes);

}  // namespace lamina::depthwise
