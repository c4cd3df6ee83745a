#include "quantise/histogram.h"

#include <algorithm>
#include <cmath>

namespace lamina {
namespace {

/// The least e with |number| < 2^e; smaller numbers than anybody quantises count as if they were larger.
int exponent_of(float number) {
  constexpr int kLeast = -100;
  int exponent = 0;
  std::frexp(number, &exponent);
  return std::max(exponent, kLeast);
}

}  // namespace

double Histogram::width() const { return std::ldexp(1.0, exponent_) / static_cast<double>(kHalf); }

/// Bins j of the old width are bin floor(j / 2^n) of the new one.
void Histogram::widen(int exponent) {
  if (bins_.empty()) {
    bins_.resize(2 * kHalf);
    exponent_ = exponent;
  }
  if (exponent <= exponent_) return;
  const int shift = std::min(exponent - exponent_, 62);
  std::vector<std::uint64_t> wider(2 * kHalf);
  for (std::int64_t i = 0; i < 2 * kHalf; ++i)
    wider[static_cast<std::size_t>(((i - kHalf) >> shift) + kHalf)] += bins_[static_cast<std::size_t>(i)];
  bins_ = std::move(wider);
  exponent_ = exponent;
}

void Histogram::add(std::span<const float> numbers) {
  float low = 0, high = 0;
  bool any = false;
  for (const float x : numbers) {
    if (!std::isfinite(x)) continue;
    low = any ? std::min(low, x) : x;
    high = any ? std::max(high, x) : x;
    any = true;
  }
  if (!any) {
    not_finite_ += numbers.size();
    return;
  }
  widen(exponent_of(std::max(std::fabs(low), std::fabs(high))));
  min_ = count_ ? std::min(min_, low) : low;
  max_ = count_ ? std::max(max_, high) : high;
  const double per_width = 1 / width();
  for (const float x : numbers) {
    if (!std::isfinite(x)) {
      ++not_finite_;
      continue;
    }
    ++count_;
    if (x == 0)
      ++zeros_;
    else
      ++bins_[static_cast<std::size_t>(static_cast<std::int64_t>(std::floor(x * per_width)) + kHalf)];
  }
}

void Histogram::add(const Histogram& other) {
  not_finite_ += other.not_finite_;
  if (other.empty()) return;
  widen(other.exponent_);
  Histogram wide = other;
  wide.widen(exponent_);
  for (std::size_t i = 0; i < bins_.size(); ++i) bins_[i] += wide.bins_[i];
  min_ = count_ ? std::min(min_, other.min_) : other.min_;
  max_ = count_ ? std::max(max_, other.max_) : other.max_;
  count_ += other.count_;
  zeros_ += other.zeros_;
}

std::vector<Histogram::Bin> Histogram::bins() const {
  std::vector<Bin> out;
  for (std::size_t i = 0; i < bins_.size(); ++i)
    if (bins_[i])
      out.push_back({(static_cast<double>(i) - static_cast<double>(kHalf) + 0.5) * width(), bins_[i]});
  return out;
}

double Histogram::quantile(double part) const {
  if (empty()) return 0;
  double wanted = part * static_cast<double>(count_);
  double below = 0;
  const auto take = [&](double from, double to, std::uint64_t count) {
    const auto n = static_cast<double>(count);
    if (n == 0 || below + n < wanted) {
      below += n;
      return false;
    }
    below = from + (to - from) * (wanted - below) / n;
    return true;
  };
  bool past_zero = false;
  for (const auto& bin : bins()) {
    if (bin.centre > 0 && !past_zero) {
      past_zero = true;
      if (take(0, 0, zeros_)) return 0;
    }
    if (take(bin.centre - width() / 2, bin.centre + width() / 2, bin.count))
      return std::clamp(below, static_cast<double>(min_), static_cast<double>(max_));
  }
  if (!past_zero && take(0, 0, zeros_)) return 0;
  return max_;
}

}  // namespace lamina
