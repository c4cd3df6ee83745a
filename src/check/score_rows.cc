#include "check/score_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ops/eval.h"

namespace lamina::check {
namespace {

constexpr std::size_t kMore = 8;  // contenders besides those of the places
constexpr double kMagnitude = 16;

/// Ranks of the scores. They stand for integers that doubles do not tell apart: of those only the order is
/// judged.
template <class T>
std::vector<double> ranks_of(const Tensor& scores) {
  const auto numbers = to_numbers<T>(scores);
  auto sorted = numbers;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  std::vector<double> out;
  for (const auto n : numbers)
    out.push_back(static_cast<double>(std::lower_bound(sorted.begin(), sorted.end(), n) - sorted.begin()));
  return out;
}

std::vector<double> numbers_of(const Tensor& scores) {
  auto out = to_doubles(scores);
  const auto type = scores.element_type();
  if ((type != ElementType::i64 && type != ElementType::u64) ||
      std::all_of(out.begin(), out.end(), [](double v) { return std::fabs(v) < 0x1p53; }))
    return out;
  return type == ElementType::i64 ? ranks_of<std::int64_t>(scores) : ranks_of<std::uint64_t>(scores);
}

}  // namespace

ScoreRows::ScoreRows(const TopK& op, const Tensor& scores, const Tensor& indices)
    : scores_(numbers_of(scores.to_aligned())) {
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
  std::vector<double> s(size_);
  for (std::size_t j = 0; j < size_; ++j) s[j] = score(row, static_cast<std::int64_t>(j));
  undecided_[row] = std::any_of(s.begin(), s.end(), [](double v) { return std::isnan(v); });
  std::vector<std::int64_t> order(size_);
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](std::int64_t j) {
    const double v = s[static_cast<std::size_t>(j)];
    return std::isnan(v) ? std::numeric_limits<double>::infinity() : v;
  };
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept_), order.end(),
      [&](std::int64_t a, std::int64_t b) { return key(a) != key(b) ? key(a) > key(b) : a < b; });
  std::copy_n(order.begin(), kept_, first_.begin() + static_cast<std::ptrdiff_t>(row * kept_));
  auto& n = contenders_[row];
  const double most = kMagnitude * std::fabs(best(row, places_ - 1));
  for (n = places_; n < kept_ && std::fabs(best(row, n)) <= most;) ++n;
}

}  // namespace lamina::check
