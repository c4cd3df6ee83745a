#pragma once
/// Depthwise convolution of integers of 8 bits, channels-last: lines of outputs for some vectors of channels.
/// Compiled once per instruction set (simd/per_isa.h).
///
/// Taps below each other are multiplied at once: two of 16 bits, or four of 8 bits where the processor has
/// VNNI. They are the rows of a group; a word has those of a channel.
#include <cstddef>
#include <cstdint>

#include "base/machine.h"
#include "kernels/native/convolution/depthwise/line_geometry.h"
#include "kernels/native/simd/finish.h"

namespace lamina::depthwise {

struct IntegerLines : LineGeometry {
  const std::uint8_t* in = nullptr;  ///< the picture's first point, at the first channel
  /// 0x80 in each byte makes unsigned bytes of signed ones, and zero points 128 more; 0: they are unsigned.
  std::uint32_t flip = 0;
  std::uint8_t outside[16] = {};              ///< what stands around the picture: its zero point, in memory
  std::int32_t zero_point = 0;                ///< of unsigned bytes
  const std::int32_t* weights = nullptr;      ///< [vector][group][line][tap along it][lanes]
  const std::int32_t* weight_sums = nullptr;  ///< [vector][lanes]
  std::byte* out = nullptr;                   ///< the first point of line `first`, at the first channel
  const std::byte* add = nullptr;             ///< the second tensor's elements, or null
  std::int64_t out_size = 0, add_size = 0;    ///< bytes of an element
  std::int64_t channel = 0;                   ///< the first
  IntegerFinish finish = {};
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

/// The kernels with the widest vectors of that machine that `channels` fill. `bytes`: weights are signed
/// 8-bit numbers.
const IntegerKernels& integer_kernels_for(const Machine& machine, std::int64_t channels, bool bytes);

}  // namespace lamina::depthwise
