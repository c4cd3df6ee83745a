// How lines are cut into tiles of outputs, whatever the types (line_geometry.h). Include inside Highway units
// only, after hwy/highway.h.
#if defined(LAMINA_DEPTHWISE_TILES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef LAMINA_DEPTHWISE_TILES_INL
#undef LAMINA_DEPTHWISE_TILES_INL
#else
#define LAMINA_DEPTHWISE_TILES_INL
#endif

#include <cstdint>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {

/// A tile: its first input (perhaps outside of the picture) and its first output, at the first channel.
template <class Lines>
struct TilePlace {
  std::int64_t y, x;  ///< of the input
  decltype(Lines::in) in;
  decltype(Lines::out) out;
  decltype(Lines::add) add;

  HWY_INLINE TilePlace(const Lines& s, std::int64_t line, std::int64_t column)
      : y((s.first + line) * s.stride_h - s.top),
        x(column * s.stride_w - s.left),
        in(s.in + y * s.in_line + x * s.in_point),
        out(s.out + line * s.out_line + column * s.out_point),
        add(s.add ? s.add + line * s.add_line + column * s.add_point : nullptr) {}
};

/// All of R lines in tiles of T; the last overlaps the one before when the width asks for it. `Window` has
/// the code: run<R, T, kEnd>(lines, line, x) computes R x T outputs from there on, with kEnd where the window
/// may reach over the borders. Tiles of fewer than kLeastInside always take that.
template <class Window, int R, int T, class Lines>
void run_tiles(const Lines& s, std::int64_t line) {
  const std::int64_t y = (s.first + line) * s.stride_h - s.top;
  [[maybe_unused]] const bool border =
      y < 0 || y + (R - 1) * s.stride_h + (s.kernel_h - 1) * s.dilation_h >= s.in_height;
  for (std::int64_t x = 0; x < s.out_width; x += T) {
    const auto from = x + T <= s.out_width ? x : s.out_width - T;
    if constexpr (T >= Window::kLeastInside) {
      const std::int64_t first = from * s.stride_w - s.left,
                         last = first + (T - 1) * s.stride_w + (s.kernel_w - 1) * s.dilation_w;
      if (!border && first >= 0 && last < s.in_width) {
        Window::template run<R, T, false>(s, line, from);
        continue;
      }
    }
    Window::template run<R, T, true>(s, line, from);
  }
}

/// All lines, kLines of the window at once: run_line<R>(lines, line) cuts R of them into tiles.
template <class Window, class Lines>
HWY_INLINE void run_all_lines(const Lines& s) {
  constexpr int R = Window::kLines;
  std::int64_t line = 0;
  for (; line + R <= s.count; line += R) Window::template run_line<R>(s, line);
  if constexpr (R > 1)
    for (; line < s.count; ++line) Window::template run_line<1>(s, line);
}

}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
