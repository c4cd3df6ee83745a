/// Yes, or no with a reason.
#include <gtest/gtest.h>

#include "base/error.h"

namespace lamina {
namespace {

TEST(Verdict, YesAndNo) {
  EXPECT_TRUE(static_cast<bool>(Verdict::yes()));
  const auto no = Verdict::no("{} of {}", 1, 2);
  EXPECT_FALSE(static_cast<bool>(no));
  EXPECT_EQ(no.reason(), "1 of 2");
}

}  // namespace
}  // namespace lamina
