/// Attention as one kernel, against the reference.
#include <gtest/gtest.h>

#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

std::string attention(const std::string& inputs, const std::string& arguments, const std::string& more = "",
                      const std::string& constants = "") {
  return fmt::format("graph ({}) -> (y) {{\n{} y = ScaledDotProductAttention({}) {}\n}}\n", inputs, constants,
                     arguments, more);
}

TEST(Attention, shapes) {
  std::uint64_t seed = 0;
  struct Case {
    std::string q, k, v;
  };
  for (const auto& [q, k, v] : std::vector<Case>{{"1,1", "1,1", "1,1"},
                                                 {"3,4", "5,4", "5,2"},
                                                 {"2,7,8", "2,9,8", "2,9,33"},
                                                 {"1,4,128,64", "1,4,128,64", "1,4,128,64"},
                                                 {"2,3,50,32", "2,3,77,32", "2,3,77,40"},
                                                 {"1,2,300,16", "1,2,300,16", "1,2,300,16"},
                                                 {"1,1,5,300", "1,1,2100,300", "1,1,2100,3"},
                                                 {"2,1,6,8", "1,3,10,8", "3,10,5"},
                                                 {"2,3,6,8", "10,8", "10,5"}})
    for (const std::string more : {"", "causal=true"}) {
      SCOPED_TRACE(q + " " + more);
      check_all_offers(
          parse(attention(fmt::format("q: f32[{}], k: f32[{}], v: f32[{}]", q, k, v), "q, k, v", more)),
          ++seed);
    }
}

TEST(Attention, masks) {
  std::uint64_t seed = 0;
  for (const std::string type : {"f32", "boolean"})
    for (const std::string mask : {"[]", "[1]", "[19]", "[14,19]", "[14,1]", "[1,19]", "[3,14,19]",
                                   "[2,1,1,19]", "[2,3,14,19]", "[2,3,14,1]", "[1,1,1,1]"}) {
      SCOPED_TRACE(type + mask);
      const auto inputs =
          fmt::format("q: f32[2,3,14,8], k: f32[2,3,19,8], v: f32[2,3,19,8], m: {}{}", type, mask);
      check_all_offers(parse(attention(inputs, "q, k, v, m")), ++seed);
      check_all_offers(parse(attention(inputs, "q, k, v, m", "causal=true")), ++seed);
    }
}

TEST(Attention, scales) {
  const std::string inputs = "q: f32[3,14,8], k: f32[3,19,8], v: f32[3,19,8]";
  check_all_offers(parse(attention(inputs, "q, k, v, _, s", "", " s = const f32[1] {0.75}\n")), 1);
  check_all_offers(parse(attention(inputs + ", s: f32[]", "q, k, v, _, s")), 2);
  check_all_offers(parse(attention(inputs + ", m: f32[14,19], s: f32[1,1]", "q, k, v, m, s")), 3);
}

/// Keys and values are read in place, also where several heads share them.
TEST(Attention, few_queries) {
  std::uint64_t seed = 0;
  struct Case {
    std::string q, k, v;
  };
  for (const auto& [q, k, v] : std::vector<Case>{{"1,64", "1,64", "1,64"},
                                                 {"2,4,1,64", "2,4,300,64", "2,4,300,64"},
                                                 {"1,3,8,128", "1,3,77,128", "1,3,77,40"},
                                                 {"2,4,3,64", "2,1,50,64", "2,1,50,64"},
                                                 {"6,12,65", "6,1030,65", "6,1030,3"},
                                                 {"6,13,65", "6,103,65", "6,103,66"},
                                                 {"5,2,8", "5,33,8", "33,17"},
                                                 {"7,64", "2,1000,64", "1000,65"}})
    for (const std::string mask : {"", "f32[]", "f32[1,1]", "boolean[]"})
      for (const std::string more : {"", "causal=true"}) {
        SCOPED_TRACE(fmt::format("{} {} {} {} {}", q, k, v, mask, more));
        const auto inputs = fmt::format("q: f32[{}], k: f32[{}], v: f32[{}], s: f32[]", q, k, v);
        check_all_offers(parse(attention(mask.empty() ? inputs : inputs + ", m: " + mask,
                                         mask.empty() ? "q, k, v, _, s" : "q, k, v, m, s", more)),
                         ++seed);
      }
  for (const std::string mask : {"f32[8,300]", "boolean[8,300]", "f32[2,1,8,1]", "boolean[2,3,8,300]"})
    check_all_offers(parse(attention("q: f32[2,3,8,64], k: f32[2,3,300,64], v: f32[2,3,300,64], m: " + mask,
                                     "q, k, v, m")),
                     ++seed);
}

/// Rows in which little or nothing takes part, NaN and infinities.
TEST(Attention, extremes) {
  check_all_offers(parse(attention("q: f32[4,8], k: f32[3,8], v: f32[3,5]", "q, k, v, m", "",
                                   " m = const f32[4,3] {-inf, -inf, -inf, 0, -inf, -inf, nan, 0, 0, -3e38, "
                                   "-3e38, 0}\n")),
                   1);
}

/// The kernel is what runs, and its scratch does not grow with the number of heads as scores would.
TEST(Attention, is_native) {
  const auto graph =
      parse(attention("q: f32[1,16,512,64], k: f32[1,16,512,64], v: f32[1,16,512,64]", "q, k, v"));
  const auto node = graph.order()[0];
  const auto offers = ask_kernels(NodeView(graph, node)).offers;
  ASSERT_FALSE(offers.empty());
  EXPECT_TRUE(offers[0].label.starts_with("native_attention_")) << offers[0].label;
  EXPECT_LT(offers[0].scratch, std::size_t{16} * 512 * 512 * 4 / 2);
}

}  // namespace
}  // namespace lamina::testing
