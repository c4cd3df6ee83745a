#include "kernels/native/integer/winograd_weights.h"

#include <algorithm>

#include "base/parallel.h"
#include "kernels/native/integer/weights.h"
#include "kernels/native/integer/winograd_loops.h"

namespace lamina::integers {
namespace {

constexpr std::int64_t kTaps = 9;
/// Outputs are known modulo twice this.
constexpr std::int64_t kMostOutput = std::int64_t{1} << 25;

/// Three taps along a side as six factors.
template <class T>
void transform(const T* taps, std::int64_t step, std::int32_t* to, std::int64_t to_step) {
  const std::int32_t a = taps[0], b = taps[step], c = taps[2 * step];
  const std::int32_t factors[] = {
      6 * a, 4 * (a + b + c), 4 * (a - b + c), a + 2 * b + 4 * c, a - 2 * b + 4 * c, 12 * c};
  for (const auto f : factors) *to = f, to += to_step;
}

}  // namespace

std::int64_t WinogradWeights::vectors(std::int64_t panel) const {
  return std::min<std::int64_t>(2, ceil_div(outputs, lanes) - 2 * panel);
}

std::int64_t WinogradWeights::offset(std::int64_t panel) const {
  return std::min(2 * panel, ceil_div(outputs, lanes)) * lanes * words() * kWinogradPlaces;
}

bool WinogradWeights::fits(const Tensor& weights) const {
  const std::int64_t type_low = operands.signed_source ? -128 : 0, type_high = type_low + 255;
  const std::int64_t zero_low = operands.zero_at_run ? type_low : operands.source_zero,
                     zero_high = operands.zero_at_run ? type_high : operands.source_zero;
  // 0 stands around the picture.
  const auto low = std::min<std::int64_t>(0, type_low - zero_high),
             high = std::max<std::int64_t>(0, type_high - zero_low);
  for (std::int64_t o = 0; o < outputs; ++o) {
    std::int64_t above = 0, below = 0;
    const auto zero = operands.zero_of_column(o);
    for (std::int64_t i = 0; i < inputs * kTaps; ++i) {
      const auto w = operands.weight(weights.raw(), o * inputs * kTaps + i) - zero;
      if (w < -128 || w > 128) return false;  // factors would leave 16 bits
      (w > 0 ? above : below) += std::abs(w);
    }
    const auto most = std::max(high * above - low * below, high * below - low * above);
    if (most >= kMostOutput) return false;
  }
  return true;
}

bool WinogradWeights::fit(const Tensor& weights, WeightStore& store) const {
  const auto key =
      fmt::format("native_integer_winograd_fits {} {} {}", operands.weights_key(), operands.signed_source,
                  operands.zero_at_run ? "any" : std::to_string(operands.source_zero));
  const auto found = store.moved(weights, key, {ElementType::i32, 1}, [&](const Tensor& t) {
    return Tensor::of({1}, std::vector<std::int32_t>{fits(t) ? 1 : 0});
  });
  return found.data<std::int32_t>()[0] != 0;
}

void WinogradWeights::pack_panel(const Tensor& weights, std::int64_t panel, std::int16_t* to) const {
  const auto width = vectors(panel) * lanes, first = 2 * panel * lanes;
  const auto here = std::min(width, outputs - first), plane = words() * width * 2;
  std::fill_n(to, kWinogradPlaces * plane, std::int16_t{0});
  for (std::int64_t c = 0; c < inputs; ++c)
    for (std::int64_t j = 0; j < here; ++j) {
      const auto o = first + j;
      std::int32_t taps[kTaps], half[3 * kWinogradInputs], factors[kWinogradPlaces];
      for (std::int64_t t = 0; t < kTaps; ++t)
        taps[t] = operands.weight(weights.raw(), (o * inputs + c) * kTaps + t) - operands.zero_of_column(o);
      for (int x = 0; x < 3; ++x) transform(taps + x, 3, half + x, 3);
      for (int y = 0; y < kWinogradInputs; ++y) transform(half + 3 * y, 1, factors + y * kWinogradInputs, 1);
      auto* at = to + (c / 2 * width + j) * 2 + c % 2;
      for (int p = 0; p < kWinogradPlaces; ++p) at[p * plane] = static_cast<std::int16_t>(factors[p]);
    }
}

Tensor WinogradWeights::packed(const Tensor& weights, WeightStore& store) const {
  const auto key = fmt::format("native_integer_winograd {} {}", lanes, operands.weights_key());
  return store.moved(weights, key, {ElementType::u8, bytes()}, [&](const Tensor& t) {
    Tensor out(ElementType::u8, {bytes()});
    auto* to = reinterpret_cast<std::int16_t*>(out.data<std::uint8_t>().data());
    const auto us = static_cast<double>(bytes()) / 1000;
    parallel_for(partitioned_here(panels(), us), [&](auto begin, auto end) {
      for (auto p = begin; p < end; ++p) pack_panel(t, p, to + 2 * offset(p));
    });
    return out;
  });
}

}  // namespace lamina::integers
