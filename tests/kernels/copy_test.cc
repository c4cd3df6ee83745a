/// Transposes, pads and other copies against the reference, over shapes and element sizes.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

/// Values that tell elements apart: random f32 bits, as other types where wanted.
void check_transpose(const std::string& shape, const std::string& order, const std::string& type,
                     std::uint64_t seed) {
  check_kernels(
      fmt::format("graph (x: {}[{}]) -> (y) {{\n o = const i64[{}] {{{}}}\n y = Transpose(x, o)\n}}\n", type,
                  shape, std::count(order.begin(), order.end(), ',') + 1, order),
      seed);
}

TEST(Copies, matrices) {
  std::uint64_t seed = 0;
  for (const int rows : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33, 70})
    for (const int columns : {1, 2, 3, 4, 5, 8, 16, 31, 64, 100})
      for (const std::string type : {"f32", "u8"})
        check_transpose(fmt::format("{},{}", rows, columns), "1, 0", type, ++seed);
  for (const std::string type : {"u8", "f16", "i64"})
    for (const std::string shape : {"3,50", "17,9", "40,70"}) check_transpose(shape, "1, 0", type, ++seed);
  check_transpose("700,500", "1, 0", "f32", ++seed);
}

TEST(Copies, orders) {
  std::uint64_t seed = 200;
  for (const std::string shape : {"2,3,5,7", "1,16,9,4", "3,20,2,17", "4,1,6,33"})
    for (const std::string order :
         {"0, 2, 3, 1", "0, 3, 1, 2", "3, 2, 1, 0", "1, 0, 2, 3", "0, 2, 1, 3", "2, 3, 0, 1"})
      for (const std::string type : {"f32", "u8"}) check_transpose(shape, order, type, ++seed);
  check_transpose("2,3,4,5,6", "4, 0, 3, 1, 2", "f32", ++seed);
  check_transpose("1,64,60,50", "0, 2, 3, 1", "f32", ++seed);
  check_transpose("1,60,50,64", "0, 3, 1, 2", "f32", ++seed);
}

/// Elements of 1, 2 and 4 bytes, in blocks of all sizes and beside them.
TEST(Copies, reorders) {
  for (const auto type :
       {ElementType::u8, ElementType::i8, ElementType::bf16, ElementType::f16, ElementType::f32})
    for (const std::int64_t channels : {2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 24, 33, 64, 65, 100, 130})
      for (const std::int64_t pixels : {2, 3, 4, 6, 9, 15, 16, 21, 31, 49, 64, 67, 196, 300}) {
        Tensor x(type, {2, channels, pixels, 1}), wanted(type, {2, pixels, 1, channels});
        const auto bytes = static_cast<std::size_t>(bits_of(type) / 8);
        SplitMix random(static_cast<std::uint64_t>(channels * pixels));
        for (std::size_t i = 0; i < x.bytes(); ++i) x.raw()[i] = static_cast<std::byte>(random.next());
        for (std::int64_t n = 0; n < 2; ++n)
          for (std::int64_t c = 0; c < channels; ++c)
            for (std::int64_t p = 0; p < pixels; ++p)
              std::memcpy(wanted.raw() + static_cast<std::size_t>((n * pixels + p) * channels + c) * bytes,
                          x.raw() + static_cast<std::size_t>((n * channels + c) * pixels + p) * bytes, bytes);
        const auto last = laid_out(x, Layout::channels_last);
        ASSERT_EQ(std::memcmp(last.raw(), wanted.raw(), x.bytes()), 0) << channels << " " << pixels;
        const auto back = plain_of(last, type, x.shape(), Layout::channels_last);
        ASSERT_EQ(std::memcmp(back.raw(), x.raw(), x.bytes()), 0) << channels << " " << pixels;
      }
}

TEST(Copies, reorders_of_many_axes) {
  for (const auto type : {ElementType::u8, ElementType::f32, ElementType::boolean})
    for (const std::size_t rank : {3, 12, 13, 20}) {
      Dims dims(rank, 1);
      dims[1] = 3, dims[2] = 5, dims[rank - 1] = 4;
      const auto x = seeded_tensor(type, dims, rank);
      const auto last = laid_out(x, Layout::channels_last);
      EXPECT_TRUE(plain_of(last, type, dims, Layout::channels_last).same_as(x)) << rank;
      EXPECT_FALSE(last.same_as(x)) << rank;
    }
}

TEST(Copies, pads) {
  std::uint64_t seed = 300;
  for (const std::string type : {"f32", "u8", "i64"})
    for (const std::string shape : {"1,3,5,7", "2,16,4,3"})
      for (const auto& [begin, end] :
           {std::pair("0, 0, 1, 1", "0, 0, 1, 1"), std::pair("1, 2, 0, 3", "0, 1, 2, 0"),
            std::pair("0, 0, -1, 2", "0, 0, 1, -2"), std::pair("0, 0, 0, 0", "0, 0, 0, 4"),
            std::pair("0, -1, -2, 0", "0, 0, -1, 0")})
        for (const bool value : {false, true})
          check_kernels(
              fmt::format(
                  "graph (x: {0}[{1}]) -> (y) {{\n b = const i64[4] {{{2}}}\n e = const i64[4] {{{3}}}\n v = "
                  "const {0}[] {{5}}\n y = Pad(x, b, e{4})\n}}\n",
                  type, shape, begin, end, value ? ", v" : ""),
              ++seed);
}

TEST(Copies, blocks_and_channels) {
  std::uint64_t seed = 400;
  for (const std::string mode : {"blocks_first", "depth_first"})
    for (const int b : {2, 3, 4}) {
      check_kernels(
          fmt::format("graph (x: f32[2,{},5,9]) -> (y) {{\n y = DepthToSpace(x) block_size={} mode={}\n}}\n",
                      3 * b * b, b, mode),
          ++seed);
      check_kernels(
          fmt::format("graph (x: f32[2,3,{},{}]) -> (y) {{\n y = SpaceToDepth(x) block_size={} mode={}\n}}\n",
                      4 * b, 17 * b, b, mode),
          ++seed);
    }
  for (const int group : {2, 3, 4})
    check_kernels(
        fmt::format("graph (x: f32[1,{},7,5]) -> (y) {{\n y = ShuffleChannels(x) axis=1 group={}\n}}\n",
                    group * 18, group),
        ++seed);
}

/// Channels of a pixel that are fewer than a vector's, as many, and more.
TEST(Copies, shuffled_channels) {
  std::uint64_t seed = 450;
  for (const std::string type : {"u8", "f16", "f32"})
    for (const int group : {2, 3, 4, 5, 8})
      for (const int each : {1, 2, 3, 5, 8, 13, 16, 29, 32, 58, 64, 65, 116})
        check_all_offers(
            parse(fmt::format("graph (x: {}[2,{},3,5]) -> (y) {{\n y = ShuffleChannels(x) axis=1 "
                              "group={}\n}}\n",
                              type, group * each, group)),
            ++seed);
}

/// As many axes as tensors of two elements along each may have and still be tensors that fit somewhere.
TEST(Copies, many_axes) {
  const auto list = [](const std::string& item, int count) {
    std::string text = item;
    for (int i = 1; i < count; ++i) text += ", " + item;
    return text;
  };
  for (const int rank : {7, 8, 9})
    check_kernels(
        fmt::format("graph (x: f32[{0}]) -> (y) {{\n r = const i64[{1}] {{{0}}}\n y = Tile(x, r)\n}}\n",
                    list("2", rank), rank),
        500);
  for (const int rank : {15, 16, 18}) {
    std::string order;
    for (int i = rank; i-- > 0;) order += std::to_string(i) + (i > 0 ? "," : "");
    check_transpose(list("2", rank), order, "f32", 501);
    check_transpose(list("2", rank), order, "u8", 502);
  }
}

}  // namespace
}  // namespace lamina::testing
