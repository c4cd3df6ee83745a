#include "base/stable_vector.h"

#include <gtest/gtest.h>

#include <string>

namespace lamina {
namespace {

TEST(StableVector, references_remain_while_it_grows) {
  StableVector<std::string> all;
  std::vector<const std::string*> where;
  for (std::size_t i = 0; i < 1000; ++i) {
    all.push_back(std::to_string(i));
    where.push_back(&all[i]);
  }
  ASSERT_EQ(all.size(), 1000U);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(where[i], &all[i]);
    EXPECT_EQ(all[i], std::to_string(i));
  }
  const auto moved = std::move(all);
  EXPECT_EQ(where[999], &moved[999]);
}

/// Also in a copy, whose last block is not full.
TEST(StableVector, a_copy_grows_alike) {
  StableVector<std::string> all(std::vector<std::string>{"a", "b", "c", "d", "e"});
  auto copy = all;
  const auto* last = &copy[4];
  for (int i = 0; i < 100; ++i) copy.push_back("x");
  EXPECT_EQ(last, &copy[4]);
  EXPECT_EQ(*last, "e");
  EXPECT_EQ(copy.size(), 105U);
  EXPECT_EQ(all.size(), 5U);
  const auto& same = copy;
  copy = same;
  EXPECT_EQ(copy[104], "x");
  copy = all;
  std::string joined;
  copy.for_each([&](const std::string& s) { joined += s; });
  EXPECT_EQ(joined, "abcde");
}

TEST(StableVector, is_empty_after_it_was_moved) {
  StableVector<int> a(std::vector<int>{1, 2});
  const auto b = std::move(a);
  EXPECT_TRUE(a.empty());
  a.push_back(3);
  EXPECT_EQ(a[0], 3);
  EXPECT_EQ(b.size(), 2U);
}

}  // namespace
}  // namespace lamina
