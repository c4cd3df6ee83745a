#include "quantise/ranges.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace lamina {
namespace {

constexpr std::array<std::string_view, 4> kNames{"min-max", "percentile", "entropy", "mse"};

struct Range {
  double low = 0, high = 0;
};

Quantiser of(const Range& range, bool symmetric) { return quantiser_of(range.low, range.high, symmetric); }

Range percentile_range(const Histogram& h, double percent) {
  const double part = percent / 100;
  return {std::min(h.quantile(1 - part), 0.0), std::max(h.quantile(part), 0.0)};
}

/// Sum of squares of what quantising changes, by the bins' centres.
double squared_error(const std::vector<Histogram::Bin>& bins, const Quantiser& q) {
  double sum = 0;
  for (const auto& bin : bins) {
    const double error = q(bin.centre) - bin.centre;
    sum += static_cast<double>(bin.count) * error * error;
  }
  return sum;
}

/// The ends in turn, each along steps from the whole range inwards; the best of all.
Range least_squares_range(const Histogram& h, const Range& whole, bool symmetric) {
  constexpr int kSteps = 96, kTurns = 2;
  const auto bins = h.bins();
  Range best = whole;
  double least = squared_error(bins, of(best, symmetric));
  const auto try_range = [&](const Range& range) {
    const double error = squared_error(bins, of(range, symmetric));
    if (error < least) least = error, best = range;
  };
  for (int turn = 0; turn < kTurns; ++turn)
    for (int i = 1; i < kSteps; ++i) {
      const double part = 1 - static_cast<double>(i) / kSteps;
      if (symmetric || whole.low == 0 || whole.high == 0) {
        if (turn == 0) try_range({whole.low * part, whole.high * part});
      } else {
        try_range({best.low, whole.high * part});
        try_range({whole.low * part, best.high});
      }
    }
  return best;
}

double outside(const std::vector<Histogram::Bin>& bins, const Range& range) {
  double count = 0;
  for (const auto& bin : bins)
    if (bin.centre < range.low || bin.centre > range.high) count += static_cast<double>(bin.count);
  return count;
}

/// Searches both ends of the range together. Ranges that leave out more than a hundredth of the numbers are
/// not tried: with few levels in them, any distribution seems to fit well.
Range entropy_range(const Histogram& h, const Range& whole, bool symmetric) {
  constexpr int kSteps = 96;
  constexpr double kMostOutside = 0.01;
  const auto bins = h.bins();
  Range best = whole;
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kSteps; ++i) {
    const double part = 1 - static_cast<double>(i) / kSteps;
    const Range range{whole.low * part, whole.high * part};
    if (outside(bins, range) > kMostOutside * static_cast<double>(h.count())) break;
    const double lost = lost_information(bins, of(range, symmetric));
    if (lost < least) least = lost, best = range;
  }
  return best;
}

}  // namespace

std::string_view name_of(Calibration method) { return kNames[static_cast<std::size_t>(method)]; }

std::optional<Calibration> calibration_named(std::string_view name) {
  const auto it = std::find(kNames.begin(), kNames.end(), name);
  if (it == kNames.end()) return std::nullopt;
  return static_cast<Calibration>(it - kNames.begin());
}

double Quantiser::operator()(double x) const {
  const double level = std::nearbyint(x / static_cast<double>(scale)) + zero_point;
  return (std::clamp(level, static_cast<double>(least()), static_cast<double>(most())) - zero_point) *
         static_cast<double>(scale);
}

Quantiser quantiser_of(double low, double high, bool symmetric) {
  constexpr double kLeastScale = 1e-30;  // and its square is a number, too
  low = std::min(low, 0.0);
  high = std::max(high, 0.0);
  if (high - low < 255 * kLeastScale) return {};
  Quantiser q;
  if (symmetric && low < 0) {
    q.type = ElementType::i8;
    q.scale = static_cast<float>(std::max(-low, high) / 127);
    return q;
  }
  q.scale = static_cast<float>((high - low) / 255);
  q.zero_point = static_cast<std::int32_t>(std::nearbyint(-low / ((high - low) / 255)));
  return q;
}

Quantiser chosen_quantiser(const Histogram& h, const RangeOptions& o) {
  const Range whole{std::min<double>(h.min(), 0), std::max<double>(h.max(), 0)};
  switch (o.method) {
    case Calibration::percentile:
      return of(percentile_range(h, o.percentile), o.symmetric);
    case Calibration::entropy:
      return of(entropy_range(h, whole, o.symmetric), o.symmetric);
    case Calibration::mse:
      return of(least_squares_range(h, whole, o.symmetric), o.symmetric);
    default:
      return of(whole, o.symmetric);
  }
}

/// Each level's share is spread evenly over its bins, and compared with what these have.
double lost_information(const std::vector<Histogram::Bin>& bins, const Quantiser& q) {
  std::array<double, 256> mass{}, places{};
  const auto level_of = [&](double x) {
    const double level = std::nearbyint(x / static_cast<double>(q.scale)) + q.zero_point;
    return static_cast<std::size_t>(std::clamp(level - q.least(), 0.0, 255.0));
  };
  double total = 0, outside_low = 0, outside_high = 0;
  std::vector<std::pair<std::size_t, double>> inside;
  for (const auto& bin : bins) {
    const auto n = static_cast<double>(bin.count);
    total += n;
    if (bin.centre < q.low() - q.scale / 2) {
      outside_low += n;
    } else if (bin.centre > q.high() + q.scale / 2) {
      outside_high += n;
    } else {
      const auto level = level_of(bin.centre);
      inside.emplace_back(level, n);
      mass[level] += n;
      places[level] += 1;
    }
  }
  if (inside.empty()) return std::numeric_limits<double>::infinity();
  // What lies outside is at the ends in the distribution, which quantising knows nothing of.
  inside.front().second += outside_low;
  inside.back().second += outside_high;
  const double kept = total - outside_low - outside_high;
  double sum = 0;
  for (const auto& [level, n] : inside)
    sum += n / total * std::log((n / total) / (mass[level] / places[level] / kept));
  return sum;
}

}  // namespace lamina
