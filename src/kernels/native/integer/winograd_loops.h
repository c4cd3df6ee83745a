#pragma once
/// The transforms of Winograd's F(4x4, 3x3) in integers; what they are: winograd.h.
#include <cstdint>

namespace lamina::integers {

/// Inputs and outputs of a tile, along a side.
inline constexpr int kWinogradInputs = 6, kWinogradOutputs = 4;
inline constexpr int kWinogradPlaces = kWinogradInputs * kWinogradInputs;

struct WinogradLoops {
  /// The inputs of a tile: place p of channel c goes to to[p * plane + c], less the zero point before. Up to
  /// whole vectors (of `channels`) there are zeros. For u8 and i8.
  void (*inputs[2])(const std::uint8_t* const* points, std::int64_t channels, std::int32_t zero,
                    std::int16_t* to, std::int64_t plane);
  /// The outputs of a tile, from place p of column c at from[p * plane + c], for whole vectors of columns:
  /// that of line y and place x goes to to[y * line + x * vectors * lanes + c].
  void (*outputs)(const std::int32_t* from, std::int64_t plane, std::int64_t vectors, std::int32_t* to,
                  std::int64_t line);
};
/// The loops for the effective instruction set.
const WinogradLoops& winograd_loops();

}  // namespace lamina::integers
