#include "kernels/native/convolution/depthwise/integer_weights.h"

#include <algorithm>

#include "base/work_partition.h"
#include "kernels/native/convolution/depthwise/window.h"
#include "ops/eval.h"

namespace lamina::depthwise {

IntegerWeights::IntegerWeights(const Tensor& weights, std::vector<std::int32_t> zero_points,
                               const windows::Geometry& g, bool turned)
    : source_(weights),
      zero_points_(std::move(zero_points)),
      channels_(g.outputs),
      height_(g.kernel[1]),
      width_(g.kernel[2]),
      turned_(turned) {}

/// [channel][tap].
std::vector<std::int64_t> IntegerWeights::numbers(const Tensor& weights) const {
  auto w = to_numbers<std::int64_t>(weights);
  const auto taps = height_ * width_;
  for (auto at = w.begin(); turned_ && at != w.end(); at += taps) std::reverse(at, at + taps);
  if (zero_points_.empty()) return w;
  for (std::size_t i = 0; i < w.size(); ++i)
    w[i] -= zero_points_[zero_points_.size() == 1 ? 0 : i / static_cast<std::size_t>(taps)];
  return w;
}

bool IntegerWeights::bytes() const {
  const auto w = numbers(source_);
  return std::all_of(w.begin(), w.end(), [](auto x) { return x >= -128 && x <= 127; });
}

std::string IntegerWeights::key(const char* what) const {
  return fmt::format("native_depthwise int8 {}{} less [{}]", what, turned_ ? " turned" : "",
                     fmt::join(zero_points_, ","));
}

Tensor IntegerWeights::words(WeightStore& store, std::int64_t lanes, std::int64_t rows,
                             std::int64_t lines) const {
  const auto make = [&](const Tensor& source) {
    const auto w = numbers(source);
    const auto groups = ceil_div(height_ + lines - 1, rows), vectors = ceil_div(channels_, lanes);
    const int bits = static_cast<int>(32 / rows);
    Tensor out(ElementType::i32, {vectors * groups * lines * width_ * lanes});
    auto* to = out.data<std::int32_t>().data();
    for (std::int64_t n = 0; n < vectors; ++n)
      for (std::int64_t g = 0; g < groups; ++g)
        for (std::int64_t line = 0; line < lines; ++line)
          for (std::int64_t k = 0; k < width_; ++k)
            for (std::int64_t lane = 0; lane < lanes; ++lane, ++to) {
              std::uint32_t word = 0;
              const auto channel = first_channel(n, channels_, lanes) + lane;
              for (std::int64_t q = 0; q < rows && channel < channels_; ++q) {
                const auto tap = g * rows + q - line;
                if (tap < 0 || tap >= height_) continue;
                const auto x = w[static_cast<std::size_t>((channel * height_ + tap) * width_ + k)];
                word |= (static_cast<std::uint32_t>(x) & (0xffffffffu >> (32 - bits))) << (q * bits);
              }
              *to = static_cast<std::int32_t>(word);
            }
    return out;
  };
  const PackedSize size(ElementType::i32, ceil_div(channels_, lanes) * ceil_div(height_ + lines - 1, rows) *
                                              lines * width_ * lanes);
  return store.packed(source_, key("words") + fmt::format(" {} {} {}", lanes, rows, lines), size, make);
}

Tensor IntegerWeights::sums(WeightStore& store, std::int64_t lanes) const {
  const PackedSize size(ElementType::i32, ceil_div(channels_, lanes) * lanes);
  return store.packed(source_, key("sums") + fmt::format(" {}", lanes), size, [&](const Tensor& source) {
    const auto w = numbers(source);
    const auto taps = height_ * width_, vectors = ceil_div(channels_, lanes);
    Tensor out(ElementType::i32, {vectors * lanes});
    auto* to = out.data<std::int32_t>().data();
    for (std::int64_t n = 0; n < vectors; ++n)
      for (std::int64_t lane = 0; lane < lanes; ++lane, ++to) {
        const auto channel = first_channel(n, channels_, lanes) + lane;
        *to = 0;
        for (std::int64_t i = 0; i < taps && channel < channels_; ++i)
          *to += static_cast<std::int32_t>(w[static_cast<std::size_t>(channel * taps + i)]);
      }
    return out;
  });
}

}  // namespace lamina::depthwise
