#include "check/score_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ops/eval.h"

namespace lamina::checking {
namespace {

constexpr std::size_t kMore = 8;  // contenders besides those of the places
constexpr double kMagnitude = 16;

}  // namespace

ScoreRows::ScoreRows(const TopK& op, const Tensor& scores, const Tensor& indices)
    : scores_(exact_numbers(scores)) {
  const auto& dims = scores.shape();
  const auto axis = normalize_axis(op.axis, dims.size(), "axis");
  for (std::size_t i = 0; i < dims.size(); ++i)
    (i < axis ? outer_ : i == axis ? size_ : inner_) *= static_cast<std::size_t>(dims[i]);
  places_ = static_cast<std::size_t>(indices.shape()[axis]);
  kept_ = std::min(size_, places_ + kMore);
  if (op.mode == TopKMode::min)
    for (auto& v : scores_) v = -v;
  first_.resize(count() * kept_);
  contenders_.resize(count());
  undecided_.resize(count());
  for (std::size_t row = 0; row < count(); ++row) rank(row);
}

void ScoreRows::rank(std::size_t row) {
  std::vector<Exact> s(size_);
  for (std::size_t j = 0; j < size_; ++j) s[j] = score(row, static_cast<std::int64_t>(j));
  undecided_[row] = std::any_of(s.begin(), s.end(), [](Exact v) { return std::isnan(v); });
  std::vector<std::int64_t> order(size_);
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](std::int64_t j) {
    const Exact v = s[static_cast<std::size_t>(j)];
    return std::isnan(v) ? std::numeric_limits<Exact>::infinity() : v;
  };
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept_), order.end(),
      [&](std::int64_t a, std::int64_t b) { return key(a) != key(b) ? key(a) > key(b) : a < b; });
  std::copy_n(order.begin(), kept_, first_.begin() + static_cast<std::ptrdiff_t>(row * kept_));
  auto& n = contenders_[row];
  const Exact most = kMagnitude * std::fabs(best(row, places_ - 1));
  for (n = places_; n < kept_ && std::fabs(best(row, n)) <= most;) ++n;
}

}  // namespace lamina::checking
