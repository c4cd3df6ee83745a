/// Strong ids.
#include <gtest/gtest.h>

#include <unordered_set>

#include "base/id.h"

namespace lamina {
namespace {

TEST(Id, InvalidUntilSet) {
  EXPECT_FALSE(NodeId{}.valid());
  EXPECT_TRUE(NodeId{0}.valid());
  EXPECT_LT(ValueId{1}, ValueId{2});
  EXPECT_EQ(ValueId{1}, ValueId{1});
  static_assert(!std::is_convertible_v<NodeId, ValueId>);
  const std::unordered_set<NodeId> set = {{1}, {2}, {1}};
  EXPECT_EQ(set.size(), 2u);
}

}  // namespace
}  // namespace lamina
