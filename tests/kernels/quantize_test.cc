/// DynamicQuantize against the reference: the very same levels.
#include <gtest/gtest.h>

#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

std::string quantize(std::int64_t size) {
  return fmt::format("graph (x: f32[{}]) -> (y, s, z) {{\n y, s, z = DynamicQuantize(x)\n}}\n", size);
}

/// All offers of the node for x give what the interpreter gives.
void expect_same(const std::vector<float>& x) {
  const auto graph = parse(quantize(static_cast<std::int64_t>(x.size())));
  const auto in = Tensor::of<float>({static_cast<std::int64_t>(x.size())}, x);
  const auto wanted = interpret(graph, {in});
  const NodeId node = graph.order()[0];
  std::size_t native = 0;
  for (auto& offer : ask_kernels(NodeView(graph, node)).offers) {
    native += offer.label.starts_with("native");
    const auto got = run_offer(graph, node, std::move(offer), {in}, {.threads = 2});
    for (std::size_t i = 0; i < wanted.size(); ++i)
      EXPECT_TRUE(got[i].same_as(wanted[i]))
          << "output " << i << " of " << x.size() << ": " << got[i] << " for " << wanted[i];
  }
  EXPECT_EQ(native, 1u);
}

TEST(DynamicQuantize, sizes) {
  for (const std::int64_t size : {1, 2, 7, 8, 15, 16, 17, 31, 33, 64, 100, 4095, 4096, 4097, 70'000})
    check_kernels(quantize(size), static_cast<std::uint64_t>(size));
  std::vector<float> x;
  for (std::uint32_t i = 1; x.size() < 50'000; i = i * 1664525 + 1013904223)
    x.push_back(static_cast<float>(i >> 8) / 3e4f - 200.0f);
  expect_same(x);
}

TEST(DynamicQuantize, ranges_and_numbers_at_their_ends) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const float most = std::numeric_limits<float>::max(), least = std::numeric_limits<float>::denorm_min();
  expect_same({0, -0.0f});
  expect_same({3, 4, 5});
  expect_same({-3, -4, -5});
  expect_same({127.5f, 0.5f, 1.5f, 2.5f, 255});
  expect_same({nan, 1, -1, nan});
  expect_same({nan});
  expect_same({inf, 1, -1});
  expect_same({-inf, 1, -1});
  expect_same({-inf, inf, nan, 0});
  expect_same({most, -most, 1});
  expect_same({least, 0, -least});
  std::vector<float> late(37, 0.25f);  // the range's ends lie behind the last whole vector
  late[35] = -7;
  late[36] = 9;
  expect_same(late);
}

}  // namespace
}  // namespace lamina::testing
