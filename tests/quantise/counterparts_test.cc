/// Which values of a quantised graph stand for which of its f32 graph, and the graph that switches between
/// them.
#include "quantise/counterparts.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "quantise/prepared_f32.h"
#include "quantise/switched.h"
#include "tests/support/run_graph.h"

namespace lamina {
namespace {

using testing::parse;

const std::string kWeights = R"(
  w = const f32[4,4,1,1] seed(1)
  v = const f32[4,4,1,1] seed(2)
)";

const std::string kLevels = R"(
  scale = const f32[] {0.02}
  zero = const u8[] {128}
  none = const u8[] {0}
)";

const std::string kF32 = "graph (x: f32[1,4,3,3]) -> (y) {" + kWeights + R"(
  a = Convolution(x, w)
  r = Relu(a)
  b = Convolution(r, v)
  y = Add(b, r)
})";

/// As ONNX Runtime writes it: the bound is left out, since levels below 0 do not exist.
const std::string kQdq = "graph (x: f32[1,4,3,3]) -> (y) {" + kWeights + kLevels + R"(
  x_q = Quantize(x, scale, zero)
  x_d = Dequantize(x_q, scale, zero)
  c = Convolution(x_d, w)
  r_QuantizeLinear_Output = Quantize(c, scale, none)
  r_DequantizeLinear_Output = Dequantize(r_QuantizeLinear_Output, scale, none)
  b = Convolution(r_DequantizeLinear_Output, v)
  y = Add(b, r_DequantizeLinear_Output)
})";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

/// The bound stays.
std::string with_bound() {
  return replaced(replaced(kQdq, "  c = Convolution(x_d, w)", "  a = Convolution(x_d, w)\n  r = Relu(a)"),
                  "Quantize(c,", "Quantize(r,");
}

/// The bound stays, and the sum reads what is not rounded.
std::string with_plain_sum() {
  return replaced(with_bound(), "Add(b, r_DequantizeLinear_Output)", "Add(b, r)");
}

/// "f32 value: computed / rounded ...", sorted.
std::string matches(const Graph& q, const Graph& f) {
  std::set<std::string> out;
  const auto found = find_counterparts(q, f);
  for (const auto& [v, c] : found.of) {
    auto text = f.value(v).name + ":" + (c.computed.valid() ? q.value(c.computed).name : "-");
    for (const auto r : c.rounded) text += "/" + q.value(r).name;
    out.insert(text);
  }
  return fmt::format("{}", fmt::join(out, " "));
}

std::string refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Counterparts, by_the_names_that_quantisers_give) {
  EXPECT_EQ(matches(parse(kQdq), parse(kF32)), "a:c b:b r:-/r_DequantizeLinear_Output x:x/x_d y:y");
}

TEST(Counterparts, a_bound_that_stays_is_itself) {
  EXPECT_EQ(matches(parse(with_bound()), parse(kF32)), "a:a b:b r:r/r_DequantizeLinear_Output x:x/x_d y:y");
}

TEST(Counterparts, layers_with_other_names_by_their_weights) {
  // Both convolutions have weights of one shape; here they come in the other order.
  const auto q = parse("graph (p: f32[1,4,3,3]) -> (n) {" + kWeights + kLevels + R"(
    two = const f32[] {2}
    low = const f32[] {0}
    high = const f32[] {5}
    v2 = Multiply(v, two)
    first = Convolution(p, w)
    m = FakeQuantize(first, low, high, low, high) levels=256
    second = Convolution(m, v2)
    n = Add(second, m)
  })");
  EXPECT_EQ(matches(q, parse(kF32)), "a:first r:-/m x:p y:n");
  const auto turned = parse("graph (p: f32[1,4,3,3]) -> (o, u) {" + kWeights + R"(
    k = Convolution(p, v)
    n = Convolution(p, w)
    o = Add(n, k)
    u = Multiply(n, k)
  })");
  const auto f = parse("graph (x: f32[1,4,3,3]) -> (s, t) {" + kWeights + R"(
    one = Convolution(x, w)
    other = Convolution(x, v)
    s = Add(one, other)
    t = Multiply(one, other)
  })");
  EXPECT_EQ(matches(turned, f), "one:n other:k s:o t:u x:p");
}

TEST(Counterparts, layers_that_share_weights_by_what_they_read) {
  const std::string third = "  u = const f32[4,4,1,1] seed(9)\n";
  const auto f = parse("graph (x: f32[1,4,3,3], z: f32[1,4,3,3]) -> (y) {" + kWeights + third + R"(
    a = Convolution(x, w)
    r = Relu(a)
    c = Convolution(r, v)
    b = Convolution(z, w)
    s = Relu(b)
    d = Convolution(s, v)
    e = Subtract(c, d)
    y = Convolution(e, u)
  })");
  const std::string one = "    a2 = Convolution(x, w)\n    r2 = Relu(a2)\n    c2 = Convolution(r2, v)\n";
  const std::string other = "    b2 = Convolution(z, w)\n    s2 = Relu(b2)\n    d2 = Convolution(s2, v)\n";
  for (const auto& layers : {one + other, other + one}) {
    SCOPED_TRACE(layers);
    const auto q = parse("graph (x: f32[1,4,3,3], z: f32[1,4,3,3]) -> (y) {" + kWeights + third + layers +
                         "    e2 = Subtract(c2, d2)\n    y = Convolution(e2, u)\n  }");
    EXPECT_EQ(matches(q, f), "a:a2 b:b2 c:c2 d:d2 r:r2 s:s2 x:x y:y z:z");
  }
}

TEST(Counterparts, batch_normalisation_is_folded_unless_both_have_it) {
  const std::string norm = R"(
    g = const f32[4] seed(3)
    m = const f32[4] seed(4)
    s = const f32[4] {1, 2, 1, 2}
)";
  const auto f = parse("graph (x: f32[1,4,3,3]) -> (y) {" + kWeights + norm +
                       "  c = Convolution(x, w)\n  y = BatchNormInference(c, g, m, m, s)\n}");
  const auto count = [](const Graph& g) {
    std::size_t n = 0;
    for (const auto id : g.order()) n += g.node(id).op.name() == "BatchNormInference";
    return n;
  };
  EXPECT_EQ(count(prepared_f32(
                f, parse("graph (x: f32[1,4,3,3]) -> (y) {" + kWeights + "  y = Convolution(x, w)\n}"))),
            0u);
  EXPECT_EQ(count(prepared_f32(
                f, parse("graph (x: f32[1,4,3,3]) -> (y) {" + kWeights + norm + kLevels +
                         "  c = Convolution(x, w)\n  q = Quantize(c, scale, zero)\n"
                         "  d = Dequantize(q, scale, zero)\n  y = BatchNormInference(d, g, m, m, s)\n}"))),
            1u);
}

TEST(Counterparts, other_inputs_and_outputs_are_named) {
  const auto two = parse("graph (x: f32[1,4,3,3], z: f32[1]) -> (y) {\n  y = Relu(x)\n}");
  EXPECT_EQ(
      refusal([&] { find_counterparts(two, parse(kF32)); }),
      "the quantised model has 2 inputs and 1 output, the f32 model 1 input and 1 output: wanted the same");
  const auto wide = parse("graph (x: f32[1,4,5,5]) -> (y) {\n  y = Relu(x)\n}");
  EXPECT_EQ(refusal([&] { find_counterparts(wide, parse(kF32)); }),
            "input \"x\" is f32[1,4,5,5] in the quantised model and f32[1,4,3,3] in the f32 model");
}

/// The switched graph with all switches alike.
Tensor switched_result(const Graph& q, const Graph& f, const std::vector<Tensor>& inputs, bool on) {
  const auto s = make_switched(q, f, find_counterparts(q, f));
  auto all = inputs;
  for (std::size_t i = 0; i < s.switches.size(); ++i)
    all.push_back(from_doubles(ElementType::boolean, {}, {on ? 1.0 : 0.0}));
  return interpret(s.graph, all)[0];
}

TEST(Switched, all_on_is_quantised_and_all_off_is_f32) {
  for (const auto& text : {kQdq, with_bound(), with_plain_sum()}) {
    SCOPED_TRACE(text);
    const auto q = parse(text), f = parse(kF32);
    const auto inputs = testing::random_inputs(f, 5);
    const auto quantised = interpret(q, inputs)[0], exact = interpret(f, inputs)[0];
    EXPECT_NE(to_doubles(quantised), to_doubles(exact));
    EXPECT_EQ(to_doubles(switched_result(q, f, inputs, true)), to_doubles(quantised));
    EXPECT_EQ(to_doubles(switched_result(q, f, inputs, false)), to_doubles(exact));
  }
}

TEST(Switched, readers_of_levels_and_of_the_sums_are_told_apart) {
  const auto q = parse(with_plain_sum()), f = parse(kF32);
  const auto s = make_switched(q, f, find_counterparts(q, f));
  std::set<std::string> levels;
  for (const auto& one : s.switches)
    for (const auto v : one.levels) levels.insert(f.value(one.value()).name + "<-" + f.value(v).name);
  EXPECT_EQ(levels, (std::set<std::string>{"a<-x", "b<-r"}));
}

TEST(Counterparts, results_stand_for_each_other_whatever_is_between) {
  const auto q = parse("graph (x: f32[1,?,3,3]) -> (y) {\n  y = Relu(x)\n}");
  const auto f = parse("graph (x: f32[1,?,3,3]) -> (y) {\n  r = Sigmoid(x)\n  y = Relu(r)\n}");
  EXPECT_EQ(matches(q, f), "x:x y:y");
}

}  // namespace
}  // namespace lamina
