#include "check/difference.h"

#include <gtest/gtest.h>

namespace lamina::checking {
namespace {

/// 2^53 and the next: one double.
constexpr std::int64_t kLarge = std::int64_t{1} << 53;

TEST(Difference, integers_that_doubles_do_not_tell_apart) {
  const auto a = Tensor::of({2}, std::vector<std::int64_t>{kLarge, 5});
  const auto b = Tensor::of({2}, std::vector<std::int64_t>{kLarge + 1, 5});
  auto d = difference(a, b);
  EXPECT_FALSE(d.within);
  EXPECT_EQ(d.mismatches, 1u);
  EXPECT_EQ(d.max, 1);
  grant(d, a, b, {0, 0});
  EXPECT_FALSE(d.within);
  grant(d, a, b, {0, 1});
  EXPECT_FALSE(d.within);
  grant(d, a, b, {1, 0});
  EXPECT_TRUE(d.within);
  EXPECT_EQ(d.undecided, 1u);
}

TEST(Difference, ends_of_unsigned_integers) {
  const auto top = std::uint64_t{0} - 1;
  const auto d = difference(Tensor::of({1}, std::vector<std::uint64_t>{top}),
                            Tensor::of({1}, std::vector<std::uint64_t>{top - 3}));
  EXPECT_EQ(d.max, 3);
}

}  // namespace
}  // namespace lamina::checking
