#include "base/words.h"

#include <gtest/gtest.h>

namespace lamina {
namespace {

TEST(Words, CaseIsThatOfAscii) {
  EXPECT_EQ(lower_case("NHWC_9\xc3\x84"), "nhwc_9\xc3\x84");
  EXPECT_EQ(upper_case("avx2 \xc3\xa4z"), "AVX2 \xc3\xa4Z");
}

TEST(Words, PiecesStandBetweenSeparators) {
  using Pieces = std::vector<std::string_view>;
  EXPECT_EQ(pieces_of("a,bc"), (Pieces{"a", "bc"}));
  EXPECT_EQ(pieces_of("a,,b,"), (Pieces{"a", "", "b", ""}));
  EXPECT_EQ(pieces_of(""), (Pieces{""}));
  EXPECT_EQ(pieces_of("a;b,c", ';'), (Pieces{"a", "b,c"}));
}

}  // namespace
}  // namespace lamina
