#include "check/ranking.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lamina::checking {
namespace {

constexpr std::size_t kMostClasses = 100000;
constexpr double kSumOfProbabilities = 0.1;  // from 1: quantised ones add up to no more than nearly that

/// The axis of classes: the last one that is longer than 1, where rows of it are scores. Of a matrix with one
/// row any numbers may be scores; of other shapes rows of probabilities are.
std::optional<std::size_t> axis_of_classes(const Pairs& p) {
  std::optional<std::size_t> axis;
  std::size_t before = 1;
  for (std::size_t i = 0; i < p.shape.size(); ++i)
    if (p.shape[i] > 1) axis = i;
  if (!axis || p.a.empty() || static_cast<std::size_t>(p.shape[*axis]) > kMostClasses) return std::nullopt;
  for (std::size_t i = 0; i < *axis; ++i) before *= static_cast<std::size_t>(p.shape[i]);
  const auto classes = static_cast<std::size_t>(p.shape[*axis]);
  if (p.shape.size() <= 2 && before == 1) return axis;
  for (std::size_t r = 0; r < before; ++r) {
    double sum = 0;
    for (std::size_t i = r * classes; i < (r + 1) * classes; ++i) {
      if (!(p.a[i] >= 0)) return std::nullopt;
      sum += p.a[i];
    }
    if (!(std::fabs(sum - 1) < kSumOfProbabilities)) return std::nullopt;
  }
  return axis;
}

std::vector<std::size_t> best(const double* row, std::size_t size, std::size_t count) {
  std::vector<std::size_t> order(size);
  std::iota(order.begin(), order.end(), 0u);
  count = std::min(count, size);
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](std::size_t a, std::size_t b) { return row[a] != row[b] ? row[a] > row[b] : a < b; });
  order.resize(count);
  return order;
}

}  // namespace

std::optional<Ranking> ranking_of(const Pairs& p) {
  const auto axis = axis_of_classes(p);
  if (!axis || std::any_of(p.a.begin(), p.a.end(), [](double v) { return std::isnan(v); }) ||
      std::any_of(p.b.begin(), p.b.end(), [](double v) { return std::isnan(v); }))
    return std::nullopt;
  const auto classes = static_cast<std::size_t>(p.shape[*axis]);
  Ranking out;
  out.rows = p.a.size() / classes;
  for (std::size_t r = 0; r < out.rows; ++r) {
    const auto a = best(p.a.data() + r * classes, classes, 5), b = best(p.b.data() + r * classes, classes, 5);
    out.top1 += a[0] == b[0];
    const auto has = [](const auto& list, std::size_t v) {
      return std::find(list.begin(), list.end(), v) != list.end();
    };
    out.top5 += has(b, a[0]) && has(a, b[0]);
  }
  return out;
}

}  // namespace lamina::checking
