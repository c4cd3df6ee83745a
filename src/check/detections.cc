#include "check/detections.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "ops/eval.h"

namespace lamina::checking {
namespace {

constexpr std::size_t kColumns = 7;
/// Largest distance, in score and box coordinates together, of two detections that are taken for one.
constexpr double kFarthest = 0.5;

using Row = std::array<double, kColumns>;

/// The rows in front of the first one whose image is -1.
std::vector<Row> rows_of(const Tensor& t) {
  const auto values = to_doubles(t.to_aligned());
  std::vector<Row> out;
  for (std::size_t i = 0; i + kColumns <= values.size(); i += kColumns) {
    Row row;
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(i), kColumns, row.begin());
    if (!(row[0] >= 0)) break;
    out.push_back(row);
  }
  return out;
}

double distance(const Row& a, const Row& b) {
  double box = 0, size = 1;
  for (std::size_t k = 3; k < kColumns; ++k) {
    box = std::max(box, std::fabs(a[k] - b[k]));
    size = std::max(size, std::fabs(a[k]));  // above 1 where boxes are in pixels
  }
  return std::fabs(a[2] - b[2]) + box / size;
}

struct Pair {
  double distance = 0;
  std::size_t a = 0, b = 0;
};

void append(std::vector<double>& out, const Row* row) {
  out.push_back(row ? (*row)[2] : 0);
  for (std::size_t k = 3; k < kColumns; ++k) out.push_back(row ? (*row)[2] * (*row)[k] : 0);
}

}  // namespace

void pair_detections(const Tensor& a, const Tensor& b, std::vector<double>& of_a, std::vector<double>& of_b) {
  const auto rows_a = rows_of(a), rows_b = rows_of(b);
  std::map<std::pair<double, double>, std::vector<std::size_t>> groups;  // of b, by image and label
  for (std::size_t i = 0; i < rows_b.size(); ++i) groups[{rows_b[i][0], rows_b[i][1]}].push_back(i);
  std::vector<Pair> possible;
  for (std::size_t i = 0; i < rows_a.size(); ++i)
    if (const auto it = groups.find({rows_a[i][0], rows_a[i][1]}); it != groups.end())
      for (const auto j : it->second)
        if (const double d = distance(rows_a[i], rows_b[j]); d <= kFarthest) possible.push_back({d, i, j});
  std::stable_sort(possible.begin(), possible.end(),
                   [](const Pair& x, const Pair& y) { return x.distance < y.distance; });
  std::vector<bool> used_a(rows_a.size()), used_b(rows_b.size());
  for (const auto& p : possible) {
    if (used_a[p.a] || used_b[p.b]) continue;
    used_a[p.a] = used_b[p.b] = true;
    append(of_a, &rows_a[p.a]);
    append(of_b, &rows_b[p.b]);
  }
  for (std::size_t i = 0; i < rows_a.size(); ++i)
    if (!used_a[i]) append(of_a, &rows_a[i]), append(of_b, nullptr);
  for (std::size_t i = 0; i < rows_b.size(); ++i)
    if (!used_b[i]) append(of_a, nullptr), append(of_b, &rows_b[i]);
}

}  // namespace lamina::checking
