/// Damaged texts: the parser answers with a graph or an Error, whatever is done to a good one.
#include <gtest/gtest.h>

#include "base/random.h"
#include "graph/same.h"
#include "graph/text.h"
#include "tests/graph/test_operators.h"

namespace lamina {
namespace {

using test::registry;

TEST(Text, DamagedTextsAreSafe) {
  const std::string good = R"(graph "net" (x: f32[1,N,?,1..8], y: i64[]) -> ("r" = c, d) {
  sources { 0 "conv1" "Conv" }
  w = const f32[2] {0.1, nan(0x7fc00001)}
  k = const i4[40] data(3)
  c: f32[1,N,?,1..8] = Compute(x, _, w, y) strides=[2,2] groups=4 @"the \x41 layer" from [0] {
    body graph (p: f32[1,N,?,1..8], s: i64[]) -> (q) { q = Relu(p) }
  }
  d = Everything(k) reals=[0.5,1e9] shape=shape[1,N:2..] tensor=tensor u8[2] seed(4) text="a" flavour=sour-sweet # end
}
)";
  const std::vector<std::byte> data(64);
  parse_graph(good, registry(), data);
  const std::string pieces = "(){}[]<>=:,.\"\\#@_- \n09aN?x";
  SplitMix random(11);
  for (int i = 0; i < 30000; ++i) {
    std::string bad = good;
    for (auto n = random.below(4) + 1; n-- > 0;) {
      const auto at = random.below(bad.size() + 1);
      switch (random.below(5)) {
        case 0:
          bad.erase(at, random.below(20) + 1);
          break;
        case 1:
          bad.insert(at, 1, pieces[random.below(pieces.size())]);
          break;
        case 2:
          if (at < bad.size()) bad[at] = static_cast<char>(random.next());
          break;
        case 3:
          bad.insert(at, good.substr(random.below(good.size()), random.below(40)));
          break;
        default:
          bad.resize(at);
      }
    }
    try {
      const auto g = parse_graph(bad, registry(), data, {.generated_elements = 1000, .depth = 4});
      const auto printed = print_graph(g);
      const auto again = parse_graph(printed.text, registry(), printed.data);
      ASSERT_EQ(difference(g, again), "") << bad;
    } catch (const Error& e) {
      ASSERT_EQ(e.code(), ErrorCode::bad_file) << e.what() << "\n" << bad;
    }
  }
}

}  // namespace
}  // namespace lamina
