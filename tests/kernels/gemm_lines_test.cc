/// Products of few rows by lines of B: every number of rows, all ends of columns and of k, lines, rows and
/// results that are further apart than they are long. Numbers are whole, so that results are exact.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "base/random.h"
#include "kernels/native/gemm/thin.h"

namespace lamina::gemm {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kUntouched = 12345;

enum class Added { nothing, another, result };

struct Case {
  std::int64_t rows, depth, columns, gap;
  bool bias;
  Added added;
  Finish finish;
};

/// `lines` of `length` whole numbers, followed by gaps of NaN: whoever uses these shows it.
std::vector<float> numbers(SplitMix& random, std::int64_t lines, std::int64_t length, std::int64_t gap,
                           float between = kNan) {
  std::vector<float> out;
  for (std::int64_t i = 0; i < lines; ++i) {
    for (std::int64_t j = 0; j < length; ++j) out.push_back(static_cast<float>(random.below(17)) - 8);
    out.insert(out.end(), static_cast<std::size_t>(gap), between);
  }
  return out;
}

float finished(const Finish& f, float x) {
  if (f.kind == Finish::Kind::clamp) return std::clamp(x, f.low, f.high);
  return f.kind == Finish::Kind::leaky && x < 0 ? x * f.slope : x;
}

/// The result, with its gaps.
std::vector<float> expected(const Case& c, const ThinTile& t, const std::vector<float>& before) {
  auto out = before;
  for (std::int64_t m = 0; m < c.rows; ++m) {
    std::vector<float> sums(static_cast<std::size_t>(c.columns));
    for (std::int64_t k = 0; k < c.depth; ++k) {
      const float x = t.a[m * t.a_step + k], *line = t.b + k * t.b_step;
      for (std::size_t n = 0; n < sums.size(); ++n) sums[n] += x * line[n];
    }
    for (std::int64_t n = 0; n < c.columns; ++n) {
      auto x = sums[static_cast<std::size_t>(n)] + (t.bias ? t.bias[n] : 0);
      if (c.added == Added::another) x += t.add[m * t.add_step + n];
      auto& to = out[static_cast<std::size_t>(m * t.c_step + n)];
      to = finished(c.finish, c.added == Added::result ? x + to : x);
    }
  }
  return out;
}

void check(const Case& c, SplitMix& random) {
  const auto a = numbers(random, c.rows, c.depth, c.gap), b = numbers(random, c.depth, c.columns, 3 * c.gap),
             bias = numbers(random, 1, c.columns, 0), add = numbers(random, c.rows, c.columns, 2 * c.gap);
  auto out = numbers(random, c.rows, c.columns, c.gap, kUntouched);
  ThinTile t{};
  t.a = a.data(), t.a_step = c.depth + c.gap, t.rows = c.rows;
  t.b = b.data(), t.b_step = c.columns + 3 * c.gap, t.depth = c.depth, t.columns = c.columns;
  t.c = out.data(), t.c_step = c.columns + c.gap;
  if (c.bias) t.bias = bias.data();
  if (c.added == Added::another) t.add = add.data(), t.add_step = c.columns + 2 * c.gap;
  if (c.added == Added::result) t.add = out.data(), t.add_step = t.c_step;
  t.finish = c.finish;
  const auto wanted = expected(c, t, out);
  thin().lines(t);
  const auto wrong = std::mismatch(out.begin(), out.end(), wanted.begin());
  ASSERT_TRUE(wrong.first == out.end())
      << c.rows << " rows, " << c.depth << " deep, " << c.columns << " columns, gap " << c.gap << ": at "
      << wrong.first - out.begin() << " " << *wrong.first << ", wanted " << *wrong.second;
}

void check_shape(std::int64_t rows, std::int64_t depth, std::int64_t columns, SplitMix& random) {
  static const Finish finishes[] = {{},
                                    {.kind = Finish::Kind::clamp, .low = -50, .high = 200},
                                    {.kind = Finish::Kind::leaky, .slope = 0.5f}};
  check({rows, depth, columns, static_cast<std::int64_t>(random.below(2) * random.below(9)),
         random.below(2) == 0, static_cast<Added>(random.below(3)), finishes[random.below(3)]},
        random);
}

TEST(GemmLines, all_ends_of_columns) {
  SplitMix random(1);
  for (std::int64_t rows = 1; rows <= 14; ++rows)
    for (std::int64_t columns = 1; columns <= 150; ++columns) {
      check_shape(rows, static_cast<std::int64_t>(random.below(12)) + 1, columns, random);
      if (HasFatalFailure()) return;
    }
}

TEST(GemmLines, all_ends_of_k) {
  SplitMix random(2);
  for (std::int64_t rows = 1; rows <= 14; ++rows)
    for (std::int64_t depth = 1; depth <= 300; depth += depth < 80 ? 1 : 13) {
      check_shape(rows, depth, static_cast<std::int64_t>(random.below(300)) + 1, random);
      if (HasFatalFailure()) return;
    }
}

TEST(GemmLines, many_pieces) {
  SplitMix random(3);
  for (std::int64_t rows = 1; rows <= 25; ++rows)
    for (const std::int64_t columns : {64, 511, 512, 513, 575, 700, 1023, 1024, 1025, 1600})
      for (const std::int64_t depth : {9, 33, 130, 515}) {
        check_shape(rows, depth, columns, random);
        if (HasFatalFailure()) return;
      }
}

}  // namespace
}  // namespace lamina::gemm
