/// Stored labels and other numbers that are made of indices: the index is found that gives them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/element_types.h"
#include "tests/check/judged_labels.h"

namespace lamina::checking {
namespace {

TEST(IndexLabels, labels_of_a_table) {
  Judged model(pairs_of_classes(R"(  v, i = TopK(scores, k) axis=1
  names = const i64[8] {10, 20, 30, 30, 50, 20, 70, 80}
  zero = const i64[] {0}
  one = const i64[1] {1}
  row = Squeeze(i, one)
  y = Gather(names, row, zero)
)"),
               {floats({50, 6}, 7)});
  Judged first(kArgMax, {floats({50, 6}, 7)});
  const Labels names{10, 20, 30, 30, 50, 20, 70, 80};
  RIGHT(model.stored(
      each(first.labels(), [&](auto l) { return names[static_cast<std::size_t>((l + 4) % 8)]; })));
  for (std::size_t row = 0; row < 50; ++row) {
    WRONG(model.changed(row, 40));  // no label of the table
    if (first.labels()[row] % 4 != 0) WRONG(model.changed(row, 10));
    if (first.labels()[row] % 4 == 0) RIGHT(model.changed(row, 50));
  }
}

/// As ONNX models have them: an index outside of the table is an error.
TEST(IndexLabels, labels_of_a_table_without_other_indices) {
  for (const std::string table : {"i64[8] {10, 20, 30, 40, 50, 60, 70, 80}", "i64[5] {10, 20, 30, 40, 50}",
                                  "f32[8,1] {10, 20, 30, 40, 50, 60, 70, 80}"}) {
    // Without room for all labels only scores of the first four classes are looked at.
    const std::string best = table.starts_with("i64[5]") ? "Add(scores, few)" : "Add(scores, all)";
    Judged model(
        pairs_of_classes("  few = const f32[8] {0, 0, 0, 0, -9, -9, -9, -9}\n  all = const f32[8] {0, 0, 0, "
                         "0, 0, 0, 0, 0}\n  best = " +
                         best +
                         "\n  v, i = TopK(best, k) axis=1\n  one = const i64[1] {1}\n  row = Squeeze(i, one)"
                         "\n  zero = const i64[] {0}\n  names = const " +
                         table + "\n  y = Gather(names, row, zero) out_of_range=error\n"),
        {floats({50, 6}, 7)});
    if (!table.starts_with("f32")) {
      const auto own = model.labels();
      for (std::size_t row = 0; row < 50; ++row) WRONG(model.changed(row, own[row] == 10 ? 20 : 10));
      WRONG(model.changed(3, 45));
    }
    if (table.starts_with("i64[8]"))
      RIGHT(model.stored(each(model.labels(), [](auto l) { return (l / 10 + 3) % 8 * 10 + 10; })));
  }
}

/// A number that is none is the same in both.
TEST(IndexLabels, labels_of_a_table_with_nan) {
  Judged model(pairs_of_classes(R"(  v, i = TopK(scores, k) axis=1
  last = const f32[4] {0, 1, inf, 0.1}
  zero = const f32[] {0}
  first = Divide(last, zero)
  names = Concat(first, last) axis=0
  axis = const i64[] {0}
  y = Gather(names, i, axis)
)"),
               {floats({50, 6}, 7)});
  const auto stored = [&](const std::vector<double>& numbers) {
    return model.stored(from_doubles(ElementType::f32, model.exact().shape(), numbers));
  };
  const auto numbers = to_doubles(model.exact());
  std::size_t nan = 0;
  for (std::size_t e = 0; e < numbers.size(); ++e) {
    const bool is = std::isnan(numbers[e]);
    auto other = numbers;
    other[e] = is ? 0 : std::numeric_limits<double>::quiet_NaN();
    EXPECT_EQ(stored(other).ok(), is);  // 0 belongs to the class with the same scores
    other[e] = 2;
    EXPECT_FALSE(stored(other).ok());
    nan += is;
  }
  EXPECT_GT(nan, 0u);
}

/// Nothing is rounded where numbers are only looked up.
TEST(IndexLabels, labels_of_a_table_of_large_numbers) {
  Judged model(pairs_of_classes(R"(  v, i = TopK(scores, k) axis=1
  names = const f32[8] {16000000, 16000002, 16000004, 16000006, 16000008, 16000010, 16000012, 16000014}
  axis = const i64[] {0}
  y = Gather(names, i, axis)
)"),
               {floats({50, 6}, 7)});
  const auto own = model.labels();
  RIGHT(model.stored(each(own, [](auto l) { return l + 8; })));
  for (std::size_t row = 0; row < 50; ++row) WRONG(model.changed(row, own[row] + 1));
}

/// Doubles do not tell them apart.
TEST(IndexLabels, labels_of_64_bits) {
  const std::int64_t x = std::int64_t{1} << 60;
  const std::string lookup =
      "  names = const i64[8] {1152921504606846977, 1152921504606846978, 1152921504606846979, "
      "1152921504606846980, 1152921504606846981, 1152921504606846982, 1152921504606846983, "
      "1152921504606846984}\n  axis = const i64[] {0}\n  y = Gather(names, i, axis)\n";
  const std::string sum = "  first = const i64[] {1152921504606846977}\n  y = Add(i, first)\n";
  for (const auto& end : {lookup, sum}) {
    Judged model(pairs_of_classes("  v, i = TopK(scores, k) axis=1 index_element_type=i64\n" + end),
                 {floats({50, 6}, 7)});
    const auto own = model.labels();
    const auto stored = [&](const Labels& labels) {
      return model.stored(from_ints(ElementType::i64, model.exact().shape(), labels));
    };
    RIGHT(stored(each(own, [&](auto l) { return (l - x + 3) % 8 + x + 1; })));
    for (std::size_t row = 0; row < 50; ++row)
      for (const auto off : {-9, -1, 1, 9}) {
        auto all = own;
        all[row] += off;
        WRONG(stored(all));
      }
  }
}

/// Coordinates, as of keypoints: an engine may divide by the width, or multiply by its inverse.
TEST(IndexLabels, labels_whose_numbers_are_rounded) {
  for (const std::string type : {"f32", "f16"}) {
    Judged model(pairs_of_classes("  v, i = TopK(scores, k) axis=1\n  f = Convert(i) destination_type=" +
                                  type + "\n  width = const " + type + "[] {0.07}\n  start = const " + type +
                                  "[] {0.21}\n  c = Multiply(f, width)\n  y = Subtract(c, start)\n"),
                 {floats({50, 6}, 7)});
    const auto& own = model.exact();
    const auto numbers = to_doubles(own);
    const auto stored = [&](double digit, double label) {
      auto moved = numbers;
      for (std::size_t e = 0; e < moved.size(); ++e) moved[e] += (e % 2 ? digit : -digit) * 0.5;
      moved[20] += label * 0.07;
      return model.stored(from_doubles(own.element_type(), own.shape(), moved));
    };
    const double digit = type == "f32" ? 0x1p-23 : 0x1p-11;
    EXPECT_TRUE(stored(digit, 0).ok()) << type << ": " << to_string(stored(digit, 0));
    for (const double label : {1.0, -1.0, 0.5, 0.1}) EXPECT_FALSE(stored(digit, label).ok()) << type << label;
    auto other = numbers;
    other[20] += other[20] > 0.03 ? -0.28 : 0.28;  // the class with the same scores
    for (const auto bits : {ElementType::f16, ElementType::f32})
      EXPECT_TRUE(model.stored(from_doubles(bits, own.shape(), other)).ok()) << type << name_of(bits);
  }
}

/// Stored as f16, 33 to 65 in steps of 0.0143 are two or three indices each: one of them may be meant, others
/// not.
TEST(IndexLabels, labels_that_are_not_told_apart_in_fewer_bits) {
  Judged model(R"(graph (x: f32[1,4600]) -> (y) {
  k = const i64[] {40}
  v, i = TopK(x, k) axis=1
  f = Convert(i) destination_type=f32
  start = const f32[] {0.5}
  c = Add(f, start)
  width = const f32[] {0.0142857146}
  y = Multiply(c, width)
}
)",
               {floats({1, 4600}, 7)});
  for (const auto type : {ElementType::f16, ElementType::bf16}) {
    RIGHT(model.stored(convert(model.exact(), type)));
    for (const double off : {0.3, 3.0}) {
      auto numbers = to_doubles(model.exact());
      numbers[7] += numbers[7] > 30 ? -off : off;
      const auto a = model.stored(from_doubles(type, {1, 40}, numbers));
      if (type == ElementType::bf16 && off < 1) continue;
      EXPECT_FALSE(a.ok()) << name_of(type) << off;
    }
  }
}

/// How much is a rounding depends on the number itself, not on other labels.
TEST(IndexLabels, small_numbers_beside_large_ones) {
  Judged model(pairs_of_classes(R"(  v, i = TopK(scores, k) axis=1
  names = const f32[8] {1000000, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7}
  axis = const i64[] {0}
  n = Gather(names, i, axis)
  twice = const f32[] {2}
  y = Multiply(n, twice)
)"),
               {floats({50, 6}, 7)});
  const auto& own = model.exact();
  const auto numbers = to_doubles(own);
  const auto off_by = [&](double share) {
    auto moved = numbers;
    for (auto& v : moved) v *= 1 + share;
    return model.stored(from_doubles(own.element_type(), own.shape(), moved));
  };
  RIGHT(off_by(0x1p-22));
  WRONG(off_by(0x1p-16));
  for (std::size_t row = 0; row < 50; ++row) {
    if (numbers[row] > 2) continue;
    auto moved = numbers;
    moved[row] += 0.1;  // between two labels
    WRONG(model.stored(from_doubles(own.element_type(), own.shape(), moved)));
  }
}

/// The first index is exactly 0, however coarse others are.
TEST(IndexLabels, halves_whose_numbers_are_exact) {
  Judged model(pairs_of_classes(R"(  v, i = TopK(scores, k) axis=1
  f = Convert(i) destination_type=f16
  stride = const f16[] {128}
  y = Multiply(f, stride)
)"),
               {floats({50, 6}, 7)});
  const auto own = model.labels();
  RIGHT(model.stored(each(own, [](auto l) { return (l + 512) % 1024; })));
  std::size_t zeros = 0;
  for (std::size_t row = 0; row < 50; ++row) {
    WRONG(model.changed(row, own[row] + 64));
    if (own[row] == 0) WRONG(model.changed(row, 1));
    zeros += own[row] == 0;
  }
  EXPECT_GT(zeros, 0u);
}

/// Several indices are one number in f16, though the last index is exact.
TEST(IndexLabels, labels_as_floats_of_few_bits) {
  constexpr std::int64_t kClasses = 2053;
  std::vector<double> scores(3 * kClasses, 0);
  for (const std::int64_t best : {std::int64_t{2051}, kClasses + 100, kClasses + 101, 2 * kClasses + 2048})
    scores[static_cast<std::size_t>(best)] = 9;
  Judged model(
      "graph (x: f32[3,2053]) -> (y) {\n  k = const i64[] {1}\n  v, i = TopK(x, k) axis=1\n"
      "  y = Convert(i) destination_type=f16\n}\n",
      {from_doubles(ElementType::f32, {3, kClasses}, scores)});
  ASSERT_EQ(model.labels(), (Labels{2052, 100, 2048}));
  RIGHT(model.changed(1, 101));
  for (const std::int64_t label : {0, 99, 102, 2052}) WRONG(model.changed(1, label));
  WRONG(model.changed(0, 2048));
}

/// As frozen TensorFlow graphs and Caffe give labels.
TEST(IndexLabels, labels_as_floats_behind_other_shapes) {
  Judged model(pairs_of_classes(R"(  v, i = TopK(scores, k) axis=1
  f = Convert(i) destination_type=f32
  to = const i64[3] {5, 10, 1}
  r = Reshape(f, to)
  order = const i64[3] {1, 2, 0}
  y = Transpose(r, order)
)"),
               {floats({50, 6}, 7)});
  const auto own = model.labels();
  RIGHT(model.stored(each(own, [](auto l) { return (l + 4) % 8; })));
  for (std::size_t e = 0; e < own.size(); ++e) WRONG(model.changed(e, (own[e] + 1) % 8));
}

}  // namespace
}  // namespace lamina::checking
