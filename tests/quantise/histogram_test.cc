/// Counts of numbers, and the ranges that are chosen by them, against all numbers one by one.
#include "quantise/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "quantise/ranges.h"

namespace lamina {
namespace {

std::vector<float> normal(std::size_t count, float mean, float deviation, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> out;
  // By sums of uniform numbers: the same with every library.
  for (std::size_t i = 0; i < count; ++i) {
    double sum = 0;
    for (int k = 0; k < 12; ++k) sum += static_cast<double>(random()) / 4294967296.0;
    out.push_back(mean + deviation * static_cast<float>(sum - 6));
  }
  return out;
}

/// Most are small, a few are large; nothing is negative.
std::vector<float> long_tailed(std::size_t count, unsigned seed) {
  auto out = normal(count, 0, 1, seed);
  for (auto& x : out) x = std::max(x, 0.0F);
  for (std::size_t i = 0; i < count / 1000; ++i) out[i * 997 % count] *= 8;
  return out;
}

Histogram of(const std::vector<float>& numbers) {
  Histogram h;
  h.add(numbers);
  return h;
}

std::uint64_t total(const Histogram& h) {
  auto sum = h.zeros();
  for (const auto& bin : h.bins()) sum += bin.count;
  return sum;
}

TEST(Histogram, counts_every_number_once) {
  auto numbers = normal(10000, 1, 3, 1);
  numbers.push_back(0);
  numbers.push_back(-0.0F);
  numbers.push_back(std::numeric_limits<float>::infinity());
  numbers.push_back(std::numeric_limits<float>::quiet_NaN());
  const auto h = of(numbers);
  EXPECT_EQ(h.count(), 10002u);
  EXPECT_EQ(total(h), 10002u);
  EXPECT_EQ(h.zeros(), 2u);
  EXPECT_EQ(h.not_finite(), 2u);
  EXPECT_EQ(h.min(), *std::min_element(numbers.begin(), numbers.begin() + 10000));
}

TEST(Histogram, order_and_batches_do_not_matter) {
  const auto numbers = normal(20000, -0.5F, 2, 2);
  std::vector<float> rising = numbers;
  std::sort(rising.begin(), rising.end(), [](float a, float b) { return std::fabs(a) < std::fabs(b); });
  Histogram pieces, merged;
  for (std::size_t i = 0; i < rising.size(); i += 100) {
    const std::span piece(rising.data() + i, 100);
    pieces.add(piece);
    Histogram own;
    own.add(piece);
    merged.add(own);
  }
  const auto whole = of(numbers);
  for (const auto* other : {&pieces, &merged}) {
    const auto found = other->bins(), wanted = whole.bins();
    ASSERT_EQ(found.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_EQ(found[i].centre, wanted[i].centre);
      EXPECT_EQ(found[i].count, wanted[i].count);
    }
    EXPECT_EQ(other->min(), whole.min());
    EXPECT_EQ(other->max(), whole.max());
  }
}

TEST(Histogram, nothing_and_numbers_at_the_ends) {
  const Histogram empty;
  EXPECT_TRUE(empty.empty());
  EXPECT_EQ(empty.quantile(0.5), 0);
  const auto same = of({4, 4, 4, -4});
  EXPECT_EQ(total(same), 4u);
  const auto tiny = of({std::numeric_limits<float>::denorm_min(), -std::numeric_limits<float>::denorm_min()});
  EXPECT_EQ(total(tiny), 2u);
  const auto huge = of({std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest()});
  EXPECT_EQ(total(huge), 2u);
}

TEST(Histogram, quantiles_are_those_of_the_numbers) {
  auto numbers = normal(50000, 0.3F, 1, 3);
  const auto h = of(numbers);
  std::sort(numbers.begin(), numbers.end());
  for (const double part : {0.001, 0.1, 0.5, 0.9, 0.999})
    EXPECT_NEAR(h.quantile(part), numbers[static_cast<std::size_t>(part * 50000)], 3 * h.width()) << part;
  EXPECT_EQ(h.quantile(1), h.max());
}

TEST(Ranges, zero_is_always_exact) {
  for (const double low : {-7.3, -0.001, 0.0, 0.4})
    for (const double high : {-0.2, 0.0, 0.03, 5.1, 1e20}) {
      if (high < low) continue;
      for (const bool symmetric : {false, true}) {
        const auto q = quantiser_of(low, high, symmetric);
        EXPECT_EQ(q(0), 0) << low << " " << high;
        EXPECT_GE(q.zero_point, q.least());
        EXPECT_LE(q.zero_point, q.most());
        EXPECT_LE(q.low(), std::min(low, 0.0) + 0.51 * q.scale);
        EXPECT_GE(q.high(), std::max(high, 0.0) - 0.51 * q.scale);
        EXPECT_TRUE(!symmetric || q.zero_point == 0);
      }
    }
  EXPECT_EQ(quantiser_of(0, 0, false), Quantiser{});
  EXPECT_EQ(quantiser_of(-2, 1, true).type, ElementType::i8);
  EXPECT_EQ(quantiser_of(0, 1, true).type, ElementType::u8);
}

double error_of(const std::vector<float>& numbers, const Quantiser& q) {
  double sum = 0;
  for (const float x : numbers) sum += (q(x) - x) * (q(x) - x);
  return sum;
}

/// The least error over all ranges of a fine grid, from the numbers themselves.
double least_error(const std::vector<float>& numbers, bool two_sided) {
  const auto h = of(numbers);
  double least = std::numeric_limits<double>::infinity();
  constexpr int kSteps = 60;
  for (int i = 0; i < kSteps; ++i)
    for (int j = 0; j < (two_sided ? kSteps : 1); ++j) {
      const double high = h.max() * (1 - static_cast<double>(i) / kSteps);
      const double low = two_sided ? h.min() * (1 - static_cast<double>(j) / kSteps) : 0;
      least = std::min(least, error_of(numbers, quantiser_of(low, high, false)));
    }
  return least;
}

TEST(Ranges, least_squares_are_found) {
  const RangeOptions mse{.method = Calibration::mse};
  const auto tail = long_tailed(20000, 4);
  const auto chosen = error_of(tail, chosen_quantiser(of(tail), mse));
  EXPECT_LT(chosen, 1.03 * least_error(tail, false));
  EXPECT_LT(chosen, error_of(tail, chosen_quantiser(of(tail), {})));
  auto both = normal(3000, 0.7F, 1, 5);
  both[7] = 12;
  EXPECT_LT(error_of(both, chosen_quantiser(of(both), mse)), 1.05 * least_error(both, true));
}

TEST(Ranges, numbers_that_are_levels_keep_their_range) {
  std::vector<float> pixels;
  for (int i = 0; i < 256; ++i) pixels.push_back(static_cast<float>(i));
  for (const auto method : {Calibration::min_max, Calibration::mse, Calibration::entropy})
    EXPECT_EQ(error_of(pixels, chosen_quantiser(of(pixels), {.method = method})), 0) << name_of(method);
}

/// Kullback's and Leibler's sum over the bins by its definition.
double divergence(const std::vector<Histogram::Bin>& bins, const Quantiser& q) {
  std::map<double, std::pair<double, double>> levels;  // number of bins, count
  std::vector<Histogram::Bin> inside;
  double below = 0, above = 0, kept = 0;
  for (const auto& bin : bins)
    if (bin.centre < q.low() - q.scale / 2) {
      below += static_cast<double>(bin.count);
    } else if (bin.centre > q.high() + q.scale / 2) {
      above += static_cast<double>(bin.count);
    } else {
      inside.push_back(bin);
      auto& level = levels[q(bin.centre)];
      level.first += 1;
      level.second += static_cast<double>(bin.count);
      kept += static_cast<double>(bin.count);
    }
  const double total = below + kept + above;
  double sum = 0;
  for (std::size_t i = 0; i < inside.size(); ++i) {
    const double p =
        (static_cast<double>(inside[i].count) + (i == 0 ? below : 0) + (i + 1 == inside.size() ? above : 0)) /
        total;
    const auto& level = levels.at(q(inside[i].centre));
    sum += p * std::log(p / (level.second / level.first / kept));
  }
  return sum;
}

TEST(Ranges, lost_information_is_that_of_the_definition) {
  const auto bins = of(long_tailed(5000, 6)).bins();
  for (const double high : {2.0, 4.0, 30.0}) {
    const auto q = quantiser_of(0, high, false);
    EXPECT_NEAR(lost_information(bins, q), divergence(bins, q), 1e-9) << high;
    EXPECT_GE(lost_information(bins, q), -1e-9);
  }
}

TEST(Ranges, entropy_and_percentile_leave_out_few) {
  const auto tail = long_tailed(50000, 7);
  for (const auto method : {Calibration::entropy, Calibration::percentile}) {
    const auto q = chosen_quantiser(of(tail), {.method = method, .percentile = 99.5});
    const auto outside = std::count_if(tail.begin(), tail.end(), [&](float x) { return x > q.high(); });
    EXPECT_LT(outside, 520) << name_of(method);
    EXPECT_GT(outside, method == Calibration::percentile ? 200 : -1);
  }
}

TEST(Ranges, methods_have_names) {
  for (const auto method :
       {Calibration::min_max, Calibration::percentile, Calibration::entropy, Calibration::mse})
    EXPECT_EQ(calibration_named(name_of(method)), method);
  EXPECT_FALSE(calibration_named("kl").has_value());
}

}  // namespace
}  // namespace lamina
