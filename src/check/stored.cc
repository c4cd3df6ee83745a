#include "check/stored.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "check/pairs.h"

namespace lamina::check {
namespace {

constexpr double kMeanMargin = 4;  // means of few elements vary more
/// Amplitudes of noise to signal: 7 dB, and what samples must stay below for that to hold.
constexpr double kMostNoise = 0.447, kNoisyModel = 0.316;
/// Levels at the end of a model: by so much of the signal all elements may be off, which tables for softmax
/// and sigmoid are, and one element in so many by a whole step.
constexpr double kMostStep = 0.01, kOneIn = 100;
constexpr double kOfTensor = 2e-5;   // of the whole tensor's root mean square, for slices that are nearly 0
constexpr double kStillSeen = 1e-6;  // of the largest element: what is smaller may be 0 in 16-bit arithmetic

bool is_like(const Tensor& a, const Tensor& b, bool detections) {
  return a.valid() && b.valid() && (detections || a.shape() == b.shape());
}

/// What samples show of the noise that the model's own roundings make.
struct Noise {
  double rms = 0, largest = 0, mean = 0;
  std::size_t not_finite = 0;
  std::vector<Slices> slices;  ///< by axis
};

Noise noise_of(const StoredCase& c, const Dims& shape) {
  Noise out;
  for (const auto& sample : c.samples) {
    if (!is_like(sample, c.exact, c.detections)) continue;
    const auto p = pairs_of(sample, c.exact, c.detections);
    const auto d = differences(p);
    out.rms = std::max(out.rms, rms_of(d));
    out.largest = std::max(out.largest, largest_of(d));
    out.mean = std::max(out.mean, std::fabs(mean_of(d)));
    out.not_finite = std::max(out.not_finite, not_finite_in_one(p));
    if (c.detections) continue;
    out.slices.resize(shape.size());
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      if (shape[axis] < 2) continue;
      auto s = slices_along(d, shape, axis);
      auto& most = out.slices[axis];
      if (most.rms.empty())
        most = std::move(s);
      else
        for (std::size_t i = 0; i < s.rms.size(); ++i) most.rms[i] = std::max(most.rms[i], s.rms[i]);
    }
  }
  return out;
}

class StoredJudge {
 public:
  explicit StoredJudge(const StoredCase& c)
      : case_(c),
        pairs_(pairs_of(c.got, c.stored, c.detections)),
        off_(differences(pairs_)),
        out_(measured(pairs_, c.detections)),
        noise_(noise_of(c, pairs_.shape)),
        signal_(std::max(rms_of(pairs_.a), rms_of(pairs_.b))),
        all_step_(step_of_all(c.step, signal_, off_.size())) {}

  Agreement result() && {
    const double most = most_noise();
    out_.wanted_snr = decibel(most, signal_);
    out_.allowed = kStoredMargin * noise_.largest + c_step() + case_.tolerance * largest_of(pairs_.a);
    if (const auto n = not_finite_in_one(pairs_); n > 3 * noise_.not_finite)
      out_.fault = fmt::format("{} values are infinite or not a number on one side only", n);
    else if (rms_of(off_) > most)
      out_.fault = whole_fault();
    else if (out_.largest > out_.allowed)
      out_.fault = "one value is further off than roundings explain";
    else if (const auto m = mean_of(off_); std::fabs(m) > most_mean(most))
      out_.fault = fmt::format("all values are off by {:.3g} on average", -m);
    else if (!case_.detections)
      judge_slices();
    return std::move(out_);
  }

 private:
  static double step_of_all(double step, double signal, std::size_t size) {
    const auto n = static_cast<double>(std::max<std::size_t>(size, 1));
    return std::max(std::min(step, kMostStep * signal), step * std::sqrt(std::max(1.0, n / kOneIn) / n));
  }
  double c_step() const { return case_.step * 1.01; }

  double most_noise() const {
    // Of three numbers, since hypot of two is a symbol of glibc 2.35: wheels for 2.34 could not have it.
    const double most = std::hypot(kStoredMargin * noise_.rms, all_step_, 0.0) + case_.tolerance * signal_;
    const double cap = noise_.rms > kNoisyModel * signal_ ? 1.5 * noise_.rms : kMostNoise * signal_;
    return std::min(most, cap);
  }

  double most_mean(double most) const {
    const auto n = static_cast<double>(std::max<std::size_t>(off_.size(), 1));
    return kMeanMargin * noise_.mean + 2 * most / std::sqrt(n) + all_step_ + case_.tolerance * signal_;
  }

  /// Describes the fault if the stored numbers are a multiple of ours.
  std::string whole_fault() const {
    double ab = 0, aa = 0;
    for (std::size_t i = 0; i < pairs_.a.size(); ++i)
      if (both_finite(pairs_.a[i], pairs_.b[i]))
        ab += pairs_.a[i] * pairs_.b[i], aa += pairs_.a[i] * pairs_.a[i];
    if (const double gain = aa > 0 ? ab / aa : 0; std::fabs(out_.cosine) > 0.99 && std::fabs(gain - 1) > 0.05)
      return fmt::format("the stored values are {:.3g} times these", gain);
    return "they differ more than roundings explain";
  }

  void judge_slices() {
    const auto& shape = pairs_.shape;
    for (std::size_t axis = 0; axis < shape.size() && out_.fault.empty(); ++axis) {
      if (shape[axis] < 2) continue;
      const auto off = slices_along(off_, shape, axis), ours = slices_along(pairs_.a, shape, axis),
                 theirs = slices_along(pairs_.b, shape, axis);
      for (std::size_t i = 0; i < off.rms.size() && out_.fault.empty(); ++i)
        if (off.rms[i] > most_of_slice(axis, i, off.length, ours.rms[i]) ||
            is_missing(axis, i, ours.rms[i], theirs.rms[i]))
          out_.fault =
              fmt::format("{} of axis {} {}", i, axis,
                          theirs.rms[i] == 0 && ours.rms[i] > 0 ? "is 0 throughout in the stored output"
                                                                : "differs more than roundings explain");
    }
  }

  double own_noise(std::size_t axis, std::size_t i) const {
    return axis < noise_.slices.size() && !noise_.slices[axis].rms.empty() ? noise_.slices[axis].rms[i] : 0;
  }

  /// Three times what samples show there; but one element alone may be as far off as any was.
  double most_of_slice(std::size_t axis, std::size_t i, std::size_t length, double signal) const {
    const double own = kStoredMargin * own_noise(axis, i),
                 one = 2 * noise_.largest / std::sqrt(static_cast<double>(length));
    return std::hypot(own, one, step_of_slice(length)) + case_.tolerance * signal + kOfTensor * signal_;
  }

  /// Four elements of a slice, or one in 25, may be a level off: more than that roundings explain only where
  /// samples show it.
  double step_of_slice(std::size_t length) const {
    const auto n = static_cast<double>(length);
    return c_step() * std::sqrt(std::min(1.0, std::max(4.0, n / 25) / n));
  }

  /// A slice of zeros where roundings never make any.
  bool is_missing(std::size_t axis, std::size_t i, double ours, double theirs) const {
    return theirs == 0 && !case_.samples.empty() && ours > kStillSeen * largest_of(pairs_.a) &&
           ours > 2 * case_.step && 4 * own_noise(axis, i) < ours;
  }

  const StoredCase& case_;
  Pairs pairs_;
  Numbers off_;
  Agreement out_;
  Noise noise_;
  double signal_, all_step_;
};

Agreement judge_integers(const StoredCase& c) {
  auto out = agreement(c.got, c.stored);
  std::size_t seen = 0;
  for (const auto& sample : c.samples)
    if (is_like(sample, c.exact, false)) seen = std::max(seen, count_mismatches(sample, c.exact));
  if (out.mismatches > std::min(3 * seen, out.count / 2 + 1))
    out.fault = fmt::format("more differ than roundings explain ({} or fewer are right)",
                            std::min(3 * seen, out.count / 2 + 1));
  return out;
}

}  // namespace

Agreement judge_stored(const StoredCase& c) {
  auto out = agreement(c.got, c.stored, c.detections);
  if (!out.ok()) return out;
  if (out.integers && c.step == 0) return judge_integers(c);
  const bool integers = out.integers;
  const auto mismatches = out.mismatches;
  out = StoredJudge(c).result();
  out.integers = integers, out.mismatches = mismatches;
  return out;
}

}  // namespace lamina::check
