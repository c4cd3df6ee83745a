/// Stored indices are judged by the scores that the reference has at them.
#include <algorithm>
#include <limits>

#include "tests/check/judged_labels.h"

namespace lamina::checking {
namespace {

TEST(IndexJudge, equal_scores_may_have_either_label_and_others_may_not) {
  Judged model(kArgMax, {floats({50, 6}, 7)});
  const auto own = model.labels();
  RIGHT(model.stored(each(own, [](auto l) { return (l + 4) % 8; })));
  auto some = own;
  for (std::size_t i = 0; i < some.size(); i += 3) some[i] = (some[i] + 4) % 8;
  RIGHT(model.stored(some));
  for (std::size_t row : {0u, 17u, 49u}) {
    WRONG(model.changed(row, (own[row] + 1) % 8));
    WRONG(model.changed(row, (own[row] + 6) % 8));
  }
  some[20] = (own[20] + 1) % 8;  // one that is wrong among many that are right
  WRONG(model.stored(some));
}

TEST(IndexJudge, indices_outside_of_the_axis) {
  Judged model(kArgMax, {floats({50, 6}, 7)});
  for (const std::int64_t outside : {-1, 8, 1000}) {
    const auto a = model.changed(3, outside);
    EXPECT_FALSE(a.ok());
    EXPECT_NE(a.fault.find("outside of the axis of 8 at [3,0]"), std::string::npos) << a.fault;
  }
}

TEST(IndexJudge, other_labels_are_wrong) {
  Judged model(kArgMax, {floats({50, 6}, 7)});
  auto rolled = model.labels();
  std::rotate(rolled.begin(), rolled.begin() + 1, rolled.end());
  WRONG(model.stored(rolled));
  WRONG(model.stored(each(model.labels(), [](auto l) { return (l + 1) % 8; })));
  WRONG(model.stored(each(model.labels(), [](auto) { return 0; })));
  const auto least = pairs_of_classes("  v, y = TopK(scores, k) axis=1 mode=min index_element_type=i64\n");
  Judged negated(least, {floats({50, 6}, 7)});
  WRONG(model.stored(negated.labels()));
  WRONG(negated.stored(model.labels()));
  RIGHT(negated.stored(each(negated.labels(), [](auto l) { return (l + 4) % 8; })));
}

/// ArgMax with select_last_index: the first of the reversed scores, counted from the end.
TEST(IndexJudge, the_last_of_equal_scores) {
  Judged model(pairs_of_classes(R"(  m = const i64[1] {-1}
  least = const i64[1] {-9223372036854775808}
  axis = const i64[1] {1}
  reversed = Slice(scores, m, least, m, axis)
  v, i = TopK(reversed, k) axis=1 index_element_type=i64
  last = const i64[] {7}
  y = Subtract(last, i)
)"),
               {floats({50, 6}, 7)});
  Judged first(kArgMax, {floats({50, 6}, 7)});
  RIGHT(model.stored(first.labels()));
  RIGHT(first.stored(model.labels()));
  WRONG(model.changed(5, (model.labels()[5] + 1) % 8));
  WRONG(model.changed(5, 8));
}

/// Scores of a mask are far from all others: the noise of such numbers allows nothing.
TEST(IndexJudge, masked_scores) {
  Judged model(R"(graph (x: f32[20,8], mask: f32[1,8]) -> (y) {
  w = const f32[8,8] seed(3)
  m = MatMul(x, w)
  scores = Add(m, mask)
  k = const i64[] {1}
  v, y = TopK(scores, k) axis=1
}
)",
               {floats({20, 8}, 7), from_doubles(ElementType::f32, {1, 8}, {0, 0, 0, 0, 0, 0, -1e9, -1e9})});
  const auto own = model.labels();
  WRONG(model.stored(each(own, [](auto l) { return (l + 1) % 6; })));
  WRONG(model.changed(4, 7));
}

const std::string kTopK = R"(graph (x: f32[4,6]) -> (y, v) {
  half = const f32[6,5] seed(3)
  w = Concat(half, half) axis=1
  scores = MatMul(x, w)
  k = const i64[] {4}
  v, y = TopK(scores, k) axis=1 index_element_type=i64)";

TEST(IndexJudge, rows_of_top_k) {
  Judged model(kTopK + "\n}\n", {floats({4, 6}, 7)});
  const auto own = model.labels();  // each row: a, a + 5, b, b + 5
  auto other = own;
  for (std::size_t i = 0; i < other.size(); i += 2) std::swap(other[i], other[i + 1]);
  RIGHT(model.stored(other));
  WRONG(model.changed(1, own[0]));  // twice
  WRONG(model.changed(3, own[2]));
  const auto twice = model.changed(1, own[0]);
  EXPECT_NE(twice.fault.find("twice"), std::string::npos) << twice.fault;
  other = own;
  std::swap(other[1], other[2]);  // not equal, and sorted by value
  WRONG(model.stored(other));
  other = {own.begin() + 4, own.end()};
  other.insert(other.end(), own.begin(), own.begin() + 4);
  WRONG(model.stored(other));
}

TEST(IndexJudge, rows_of_top_k_without_an_order) {
  Judged model(kTopK + " sort=none\n}\n", {floats({4, 6}, 7)});
  const auto own = model.labels();
  auto other = own;
  std::swap(other[0], other[3]);
  std::reverse(other.begin() + 4, other.begin() + 8);
  RIGHT(model.stored(other));
  other[0] = other[1];
  WRONG(model.stored(other));
  // Instead of the best one some other.
  other = own;
  for (std::int64_t j = 0; j < 10; ++j)
    if (std::find(own.begin(), own.begin() + 4, j) == own.begin() + 4) {
      other[0] = j;
      WRONG(model.stored(other));
    }
}

TEST(IndexJudge, rows_of_top_k_by_index) {
  Judged model(kTopK + " sort=index\n}\n", {floats({4, 6}, 7)});
  auto other = model.labels();
  std::swap(other[0], other[1]);
  WRONG(model.stored(other));
}

/// A map of 21 classes, in 8 bits, of which many scores are at the end of the levels.
std::string segmentation(const std::string& levels) {
  return R"(graph (x: f32[1,4,32,32]) -> (y) {
  w = const f32[21,4,1,1] seed(3)
  conv = Convolution(x, w)
  low = const f32[] {-0.5}
  high = const f32[] {0.5}
)" + levels +
         R"(  k = const i64[] {1}
  v, i = TopK(q, k) axis=1
  axis = const i64[1] {1}
  map = Squeeze(i, axis)
  y = Convert(map) destination_type=i64
}
)";
}

TEST(IndexJudge, segmentation_with_saturated_levels) {
  for (const std::string levels : {"  q = FakeQuantize(conv, low, high, low, high) levels=256\n",
                                   "  top = const f32[] {255}\n  zero = const f32[] {0}\n"
                                   "  f = FakeQuantize(conv, low, high, zero, top) levels=256\n"
                                   "  q = Convert(f) destination_type=u8\n"}) {
    const auto text = segmentation(levels);
    const auto x = floats({1, 4, 32, 32}, 11);
    Judged model(text, {x});
    // The scores themselves, to know which are tied.
    auto with_scores = text;
    with_scores.replace(with_scores.find("(y)"), 3, "(y, q)");
    const auto scores = to_doubles(interpret(parse_graph(with_scores, operators()), {x})[1]);
    const auto own = model.labels();
    const auto at = [&](std::int64_t c, std::size_t p) {
      return scores[static_cast<std::size_t>(c) * 1024 + p];
    };
    auto last = own;  // the last of equal scores everywhere
    std::size_t tied = 0;
    for (std::size_t p = 0; p < own.size(); ++p)
      for (std::int64_t c = own[p]; c < 21; ++c)
        if (at(c, p) == at(own[p], p)) last[p] = c, tied += c != own[p];
    EXPECT_GT(tied, 200u);
    RIGHT(model.stored(last));
    // A block of 8 x 8 with one label, where it is far from the best.
    auto constant = last;
    std::size_t wrong = 0;
    for (std::size_t r = 8; r < 16; ++r)
      for (std::size_t c = 8; c < 16; ++c) constant[r * 32 + c] = 4;
    for (std::size_t p = 0; p < own.size(); ++p) wrong += at(constant[p], p) < at(own[p], p);
    EXPECT_GT(wrong, 10u);
    WRONG(model.stored(constant));
    auto rolled = own;
    std::rotate(rolled.begin(), rolled.begin() + 32, rolled.end());
    WRONG(model.stored(rolled));
    WRONG(model.stored(Labels(1024, 7)));
    // Levels that differ by one here and there, but not throughout.
    auto near = own;
    std::size_t nearly = 0;
    for (std::size_t p = 0; p < own.size() && nearly < 20; ++p)
      for (std::int64_t c = 0; c < 21; ++c)
        if (const double off = at(own[p], p) - at(c, p);
            off > 0 && off < (levels.find("top") != levels.npos ? 1.5 : 1.5 / 255)) {
          near[p] = c, ++nearly;
          break;
        }
    EXPECT_GT(nearly, 0u);
    RIGHT(model.stored(near));
  }
}

/// Without floats and without levels nothing is rounded: only equal scores may change their labels.
TEST(IndexJudge, scores_that_are_whole_numbers) {
  Judged model(R"(graph (x: i32[2,4]) -> (y) {
  k = const i64[] {1}
  v, y = TopK(x, k) axis=1
}
)",
               {from_ints(ElementType::i32, {2, 4}, {5, 7, 7, 6, 100000, 99999, 0, 100000})});
  RIGHT(model.stored({2, 3}));
  WRONG(model.stored({3, 0}));
  WRONG(model.stored({1, 1}));
}

/// Doubles do not tell them apart.
TEST(IndexJudge, scores_that_are_large_whole_numbers) {
  for (const auto type : {ElementType::i64, ElementType::u64})
    for (const std::string mode : {"max", "min"}) {
      const std::int64_t x = std::int64_t{1} << 60;
      Judged model("graph (x: " + std::string(name_of(type)) +
                       "[2,4]) -> (y) {\n  k = const i64[] {1}\n  v, y = TopK(x, k) axis=1 mode=" + mode +
                       "\n}\n",
                   {from_ints(type, {2, 4}, {x + 1, x + 3, x + 3, x + 2, 0, x + 9, 0, x + 9})});
      const bool most = mode == "max";
      RIGHT(model.stored(most ? Labels{2, 3} : Labels{0, 2}));
      WRONG(model.stored({3, most ? 1 : 0}));
      WRONG(model.stored({most ? 0 : 3, most ? 1 : 0}));
      WRONG(model.stored(most ? Labels{2, 0} : Labels{0, 1}));
    }
}

/// Runs with noise have scores on both sides of the number from which doubles do not hold every integer.
TEST(IndexJudge, whole_numbers_around_the_precision_of_doubles) {
  for (const std::string times : {"24343725000000000", "24343760000000000", "24343780000000000"}) {
    Judged model("graph (x: f32[1,4]) -> (y) {\n  part = const f32[] {0.37}\n  times = const f32[] {" +
                     times +
                     "}\n  a = Multiply(x, part)\n  b = Multiply(a, times)\n"
                     "  scores = Convert(b) destination_type=i64\n  k = const i64[] {1}\n"
                     "  v, y = TopK(scores, k) axis=1\n}\n",
                 {from_doubles(ElementType::f32, {1, 4}, {0.2, 1, 0.5, 1 - 0x1p-22})});
    ASSERT_EQ(model.labels(), Labels{1});
    RIGHT(model.stored({3}));  // what roundings explain
    for (const std::int64_t label : {0, 2}) WRONG(model.stored({label}));
  }
}

TEST(IndexJudge, scores_that_are_not_finite) {
  const auto inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  Judged model(
      R"(graph (x: f32[4,3]) -> (y) {
  k = const i64[] {1}
  v, y = TopK(x, k) axis=1
}
)",
      {from_doubles(ElementType::f32, {4, 3}, {-inf, 0.5, -inf, inf, 3, inf, -inf, -inf, -inf, 1, nan, 2})});
  EXPECT_EQ(model.labels(), Labels({1, 0, 0, 1}));
  RIGHT(model.stored({1, 2, 1, 2}));  // engines do not agree about NaN
  WRONG(model.stored({0, 0, 0, 1}));
  WRONG(model.stored({1, 1, 0, 1}));
  WRONG(model.stored({1, 0, 0, 3}));
}

/// Comparisons are not made of indices: the bound is by number, as before.
TEST(IndexJudge, what_is_no_index_has_no_scores) {
  Judged model(R"(graph (x: f32[4,3]) -> (y) {
  h = const f32[] {0.1}
  y = Greater(x, h)
}
)",
               {floats({4, 3}, 5)});
  const auto a = model.changed(0, 1 - model.labels()[0]);
  EXPECT_FALSE(a.ok());
  EXPECT_FALSE(a.loss);
}

}  // namespace
}  // namespace lamina::checking
