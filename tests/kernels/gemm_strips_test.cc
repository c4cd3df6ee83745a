/// Strips and batches that are counted instead of listed.
#include "kernels/native/gemm/strips.h"

#include <gtest/gtest.h>

#include <map>

#include "base/random.h"
#include "kernels/native/move/positions.h"

namespace lamina::gemm {
namespace {

std::int64_t five_rows(std::int64_t length) { return std::min<std::int64_t>(length, 5); }

Strips strips_of(const std::vector<Region>& regions, std::int64_t most) {
  Strips strips;
  for (const auto& r : regions) strips.add(Cut(r, five_rows, most));
  return strips;
}

std::vector<Region> random_regions(SplitMix& random) {
  std::vector<Region> regions(1 + random.below(3));
  for (auto& r : regions) {
    r.width = 1 + static_cast<std::int64_t>(random.below(23));
    r.lines = 1 + static_cast<std::int64_t>(random.below(random.below(2) ? 4 : 40));
  }
  return regions;
}

TEST(Strips, have_each_point_once) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    SplitMix random(seed);
    const auto regions = random_regions(random);
    const auto most = 1 + static_cast<std::int64_t>(random.below(9));
    const auto strips = strips_of(regions, most);
    std::map<std::tuple<std::size_t, std::int64_t, std::int64_t>, int> seen;
    StripWalk walk(strips, 0);
    for (std::int64_t i = 0; i < strips.count(); ++i) {
      const auto s = walk.next();
      EXPECT_LE(s.repeat, most);
      for (std::int64_t set = 0; set < s.repeat; ++set)
        for (std::int64_t row = 0; row < s.rows; ++row)
          ++seen[{s.region, s.line + set * s.line_move + (s.down ? row : 0),
                  s.column + set * s.column_move + (s.down ? 0 : row)}];
    }
    std::int64_t points = 0;
    for (std::size_t r = 0; r < regions.size(); ++r)
      for (std::int64_t line = 0; line < regions[r].lines; ++line)
        for (std::int64_t column = 0; column < regions[r].width; ++column, ++points)
          ASSERT_EQ((seen[{r, line, column}]), 1) << r << " " << line << " " << column;
    EXPECT_EQ(strips.points(), points);
    EXPECT_EQ(static_cast<std::int64_t>(seen.size()), points);
  }
}

TEST(Strips, may_be_walked_from_anywhere) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SplitMix random(seed);
    const auto strips = strips_of(random_regions(random), 1 + static_cast<std::int64_t>(random.below(9)));
    StripWalk all(strips, 0);
    for (std::int64_t i = 0; i < strips.count(); ++i) {
      const auto wanted = all.next(), got = StripWalk(strips, i).next();
      EXPECT_EQ(got.region, wanted.region);
      EXPECT_EQ(got.line, wanted.line);
      EXPECT_EQ(got.column, wanted.column);
      EXPECT_EQ(got.rows, wanted.rows);
      EXPECT_EQ(got.repeat, wanted.repeat);
    }
  }
}

TEST(Strips, are_shared_out_by_points) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    SplitMix random(seed);
    const auto strips = strips_of(random_regions(random), 1 + static_cast<std::int64_t>(random.below(9)));
    const auto pieces = 1 + static_cast<std::int64_t>(random.below(7));
    std::int64_t largest = 0, most = 0;
    EXPECT_EQ(strips.bound(0, pieces), 0);
    EXPECT_EQ(strips.bound(pieces, pieces), strips.count());
    StripWalk walk(strips, 0);
    for (std::int64_t p = 0; p < pieces; ++p) {
      ASSERT_LE(strips.bound(p, pieces), strips.bound(p + 1, pieces));
      std::int64_t points = 0;
      for (auto i = strips.bound(p, pieces); i < strips.bound(p + 1, pieces); ++i) {
        const auto s = walk.next();
        largest = std::max(largest, s.rows * s.repeat);
        points += s.rows * s.repeat;
      }
      most = std::max(most, points);
    }
    EXPECT_LE(most, strips.points() / pieces + 1 + largest);
  }
}

TEST(Positions, are_those_of_nested_loops) {
  Positions<2> p;
  p.add(2, {60, 0});
  p.add(3, {20, 7});
  p.add(1, {99, 99});
  p.add(4, {5, 0});
  p.add(5, {1, 0});
  ASSERT_EQ(p.count(), 120);
  std::int64_t index = 0;
  for (std::int64_t a = 0; a < 2; ++a)
    for (std::int64_t b = 0; b < 3; ++b)
      for (std::int64_t c = 0; c < 4; ++c)
        for (std::int64_t d = 0; d < 5; ++d, ++index) {
          EXPECT_EQ(p[index][0], a * 60 + b * 20 + c * 5 + d);
          EXPECT_EQ(p[index][1], b * 7);
        }
  EXPECT_EQ(Positions<1>().count(), 1);
  EXPECT_EQ(Positions<1>()[0][0], 0);
}

}  // namespace
}  // namespace lamina::gemm
