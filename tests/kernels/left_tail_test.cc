/// Functions that go to 0 on the left, where a model may divide by them or take their logarithm: every offer
/// keeps the digits of results near 0. Gelu and Mish keep those of a number near 1 (docs/architecture.md).
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

constexpr std::int64_t kChannels = 16, kSize = 20;

Tensor numbers_from_left() {
  std::vector<double> x(kChannels * kSize);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 5 - 0.25 * static_cast<double>(i);  // to -74.75
  return from_doubles(ElementType::f32, {1, kChannels, 4, 5}, x);
}

/// All offers for the last node of the graph, which gives a function of its input. `beside_one`: how much the
/// result may be off beside that, relative to the input.
void expect_digits(const std::string& text, double beside_one) {
  SCOPED_TRACE(text);
  const Graph g = parse(text);
  const std::vector<Tensor> inputs{numbers_from_left()};
  const auto wanted = to_doubles(interpret(g, inputs)[0]);
  const auto id = g.order().back();
  const Node& n = g.node(id);
  std::vector<Tensor> in;
  for (const auto v : n.inputs)
    in.push_back(!v.valid() ? Tensor() : g.constant(v) ? *g.constant(v) : inputs[0]);
  std::size_t offers = 0;
  for (const auto& offer : ask_kernels(NodeView(g, id)).offers) {
    if (offer.is_view || offer.last_resort || offer.stages < epilogue_size(n)) continue;
    ++offers;
    const auto got = to_doubles(run_offer(g, id, offer, in).at(0));
    const auto x = to_doubles(inputs[0]);
    for (std::size_t i = 0; i < got.size(); ++i)  // an exponent has the digits of an f32 number
      ASSERT_LE(std::fabs(got[i] - wanted[i]),
                0x1p-23 * (4 + std::fabs(x[i])) * std::fabs(wanted[i]) + beside_one * std::fabs(x[i]))
          << offer.label << " of " << x[i] << " is " << got[i] << ", wanted " << wanted[i];
  }
  EXPECT_GT(offers, 0u);
}

TEST(LeftTail, small_results_keep_their_digits) {
  std::string identity;
  for (int i = 0; i < kChannels * kChannels; ++i)
    identity += fmt::format("{}{}", i == 0 ? "" : ",", i % (kChannels + 1) == 0 ? 1 : 0);
  const auto expect = [&](const std::string& function, double beside_one) {
    expect_digits(fmt::format("graph (x: f32[1,16,4,5]) -> (y) {{\n y = {}(x)\n}}\n", function), beside_one);
    expect_digits(
        fmt::format("graph (x: f32[1,16,4,5]) -> (y) {{\n w = const f32[16,16,1,1] {{{}}}\n y = "
                    "Convolution(x, w) {{\n body graph (a: f32[1,16,4,5]) -> (r) {{\n r = {}(a)\n }}\n "
                    "}}\n}}\n",
                    identity, function),
        beside_one);
  };
  for (const std::string function : {"Exp", "Sigmoid", "SoftPlus", "Swish"}) expect(function, 0);
  for (const std::string function : {"Gelu", "Mish"}) expect(function, 0x1p-22);
}

}  // namespace
}  // namespace lamina::testing
