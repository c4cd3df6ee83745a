#include "check/judge.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "check/bisect.h"
#include "graph/text.h"
#include "ops/control.h"
#include "ops/elementwise.h"
#include "ops/eval.h"
#include "ops/operators.h"
#include "rules/optimize.h"
#include "tests/check/planted.h"

namespace lamina::checking::judge_test {
namespace {

using lamina::testing::planted_rules;

/// Quantised in all ways, and one place for each planted rule.
const std::string kQuantised = R"(graph (x: f32[1,2,4,4]) -> (out) {
  low = const f32[] {-1}
  high = const f32[] {1}
  q = FakeQuantize(x, low, high, low, high) levels=16
  w = const f32[2,2,1,1] {0.5, -0.25, 1, 0.75}
  conv = Convolution(q, w)
  b = const f32[1,2,1,1] {0.1, -0.2}
  biased = Add(conv, b)
  r = Relu(biased)
  s = const f32[] {0.7}
  scaled = Multiply(r, s)
  third = const f32[] {0.3}
  less = Subtract(scaled, third)
  q2 = FakeQuantize(less, low, high, low, high) levels=256
  step = const f32[] {0.0078431373}
  zero = const u8[] {128}
  u = Quantize(q2, step, zero) destination_type=u8
  d = Dequantize(u, step, zero)
  soft = Softmax(d) axis=1
  out = Sigmoid(soft)
}
)";

Graph parse(const std::string& text) { return parse_graph(text, operators()); }

std::vector<Tensor> inputs_of(const Graph& g) {
  std::vector<Tensor> in;
  for (const auto v : g.inputs())
    in.push_back(seeded_tensor(g.type(v).element, g.type(v).shape.sizes(), 7 + in.size()));
  return in;
}

std::vector<std::string> wrong_values(const Judgement& j) {
  std::vector<std::string> out;
  for (const auto& v : j.values)
    if (!v.ok()) out.push_back(v.name);
  return out;
}

void apply(const Rule& rule, Graph& g) {
  Ledger ledger;
  const std::vector<Rule> rules{rule};
  Driver driver(rules, {}, ledger);
  ASSERT_EQ(driver.run(g, RuleSet::normalize), 1u) << rule.name;
}

void rewrite(Graph& g, std::int64_t count = -1) {
  Ledger ledger;
  RuleOptions options;
  options.stop_after = count;
  optimize(g, options, ledger);
}

const std::map<std::string, std::string> kWhere{
    {"planted-lost-bias", "biased"},      {"planted-wrong-scale", "scaled"}, {"planted-wrong-levels", "q"},
    {"planted-swapped-operands", "less"}, {"planted-lost-zero-point", "d"},  {"planted-wrong-axis", "soft"}};

TEST(Judge, right_rewriting_is_clean) {
  const auto original = parse(kQuantised);
  auto g = original;
  rewrite(g);
  const auto j = judge_rewriting(original, inputs_of(original), g);
  EXPECT_EQ(wrong_values(j), std::vector<std::string>());
  EXPECT_GT(j.values.size(), 3u);
}

/// Each piece runs on the original's values: what is wrong before it is not seen behind it.
TEST(Judge, a_wrong_rule_is_wrong_where_it_fired_and_nowhere_else) {
  const auto original = parse(kQuantised);
  for (const auto& rule : planted_rules()) {
    auto g = original;
    apply(rule, g);
    EXPECT_EQ(wrong_values(judge_rewriting(original, inputs_of(original), g)),
              std::vector<std::string>{kWhere.at(rule.name)})
        << rule.name;
  }
}

TEST(Judge, a_wrong_rule_is_found_behind_all_others) {
  const auto original = parse(kQuantised);
  for (const auto& rule : planted_rules()) {
    auto g = original;
    apply(rule, g);
    rewrite(g);
    EXPECT_EQ(wrong_values(judge_rewriting(original, inputs_of(original), g)).size(), 1u) << rule.name;
  }
}

TEST(Judge, bisecting_names_it) {
  const auto original = parse(kQuantised);
  for (const auto& rule : planted_rules()) {
    const PlantedRule planted(rule);
    const auto culprit =
        guilty_rewrite(original, inputs_of(original), [&](std::int64_t count, Ledger& ledger) {
          auto g = original;
          RuleOptions options;
          options.stop_after = count;
          optimize(g, options, ledger);
          return g;
        });
    ASSERT_TRUE(culprit) << rule.name;
    EXPECT_EQ(culprit->rewrite.find(rule.name + " at '"), 0u) << culprit->rewrite;
    EXPECT_GT(culprit->total, culprit->number);
  }
}

TEST(Judge, what_a_rule_makes_that_can_not_run_is_wrong) {
  const auto original = parse(kQuantised);
  const auto now = parse(R"(graph (x: f32[?,2,4,4]) -> (out) {
  shape = const i64[2] {3, 11}
  y = Reshape(x, shape)
  out = Sigmoid(x)
})");
  auto g = now;
  g.set_result(0, g.find_value("y"));
  const auto j = judge_rewriting(original, inputs_of(original), g);
  EXPECT_FALSE(j.clean());
  EXPECT_FALSE(j.values.back().problem.empty());
}

/// 20 times 0.7 of the carried value.
Graph looping() {
  Graph body;
  const TensorType one{ElementType::i64, Shape::of({})}, yes{ElementType::boolean, Shape::of({})},
      floats{ElementType::f32, Shape::of({2})};
  body.add_input("i", one);
  const auto go_on = body.add_input("go_on", yes);
  const auto x = body.add_input("x", floats);
  const auto y = body.add(Multiply{}, {x, body.add_constant(Tensor::scalar(0.7f))}, "shrink");
  body.add_result("go_on", go_on);
  body.add_result("y", y);
  Graph g;
  const auto start = g.add_input("start", floats);
  Loop loop;
  loop.carried = 1;
  const auto trips = g.add_constant(Tensor::scalar<std::int64_t>(20));
  const auto id = g.add_node(loop, {trips, ValueId{}, start}, "loop", 1, {body});
  g.add_result("end", g.node(id).outputs[0]);
  return g;
}

TEST(Judge, looks_into_bodies) {
  const auto original = looping();
  EXPECT_TRUE(judge_rewriting(original, inputs_of(original), original).clean());
  for (const auto& rule : planted_rules()) {
    if (rule.name != "planted-wrong-scale") continue;
    auto g = original;
    apply(rule, g);
    const auto wrong = wrong_values(judge_rewriting(original, inputs_of(original), g));
    EXPECT_EQ(wrong, (std::vector<std::string>{"loop/shrink", "loop"}));
  }
}

/// What runs a body, in text; `inside` makes r of p, and q of q.
std::string running(const std::string& trips, const std::string& starts, const std::string& inside) {
  return R"(graph (x: f32[3], z: f32[3]) -> (y) {
  n = const i64[] {)" +
         trips + "}\n  y, w = Loop(n, _, " + starts + R"() carried=2 {
    body graph (i: i64[], c: boolean[], p: f32[3], q: f32[3]) -> (t, r, s) {
      t = const boolean[] {true}
      k = const f32[] {0.5}
      h = Multiply(p, k)
      )" +
         inside + R"(
      s = Relu(q)
    }
  }
}
)";
}

bool same_to_judge(const std::string& original, const std::string& now) {
  const std::vector<Tensor> in{Tensor::of({3}, std::vector<float>{1, 2, 30}),
                               Tensor::of({3}, std::vector<float>{1, 2, 6})};
  return judge_rewriting(parse(original), in, parse(now)).clean();
}

/// Bodies are judged on the original's values: that says nothing of what a rewritten loop is given.
TEST(Judge, what_loops_are_given_is_judged) {
  for (const std::string inside : {"r = Add(h, q)", "g = Add(h, q)\n      r = Round(g)"}) {
    const auto original = running("12", "x, z", inside);
    EXPECT_TRUE(same_to_judge(original, original));
    EXPECT_FALSE(same_to_judge(original, running("12", "z, x", inside)));
    EXPECT_FALSE(same_to_judge(original, running("3", "x, z", inside)));
  }
  EXPECT_FALSE(same_to_judge(running("12", "x, z", "r = Add(h, q)"), running("11", "x, z", "r = Add(h, q)")));
}

TEST(Judge, what_branches_are_given_is_judged) {
  const auto branching = [](const std::string& given) {
    return parse(R"(graph (c: boolean[], x: f32[3], z: f32[3]) -> (y) {
  d = LogicalNot(c)
  y = If()" + given +
                 R"() {
    body graph (p: f32[3]) -> (q) {
      q = Round(p)
    }
    body graph (p: f32[3]) -> (q) {
      q = Exp(p)
    }
  }
})");
  };
  const auto yes = from_doubles(ElementType::boolean, Dims{}, {1});
  const std::vector<Tensor> in{yes, Tensor::of({3}, std::vector<float>{1.2f, 2.7f, 3.1f}),
                               Tensor::of({3}, std::vector<float>{4, 5, 6})};
  const auto original = branching("c, x");
  EXPECT_TRUE(judge_rewriting(original, in, original).clean());
  EXPECT_FALSE(judge_rewriting(original, in, branching("d, x")).clean());
  EXPECT_FALSE(judge_rewriting(original, in, branching("c, z")).clean());
}

TEST(Judge, no_rounding_makes_an_infinity) {
  const auto made_by = [](const std::string& text) {
    return parse(
        "graph (x: f32[1,3,1,1]) -> (y) {\n  k = const f32[] {2}\n  w = const f32[3,3,1,1] "
        "{1e38, 1e38, 3e38, 2, 2, 2, 0, 0, 1}\n  zero = const f32[] {0}\n  " +
        text + "\n}");
  };
  const std::vector<Tensor> in{Tensor::of({1, 3, 1, 1}, std::vector<float>{1, 2, 3})};
  const auto wrong = [&](const std::string& original, const std::string& now) {
    return !judge_rewriting(made_by(original), in, made_by(now)).clean();
  };
  const std::string twice = "y = Multiply(x, k)";
  EXPECT_FALSE(wrong(twice, "y = Add(x, x)"));
  EXPECT_TRUE(wrong(twice, "y = Divide(x, zero)"));
  EXPECT_TRUE(wrong(twice, "y = Convolution(x, w)"));
  EXPECT_TRUE(wrong("y = Clamp(x) min=0 max=6", "a = Divide(x, zero)\n  y = Clamp(a) min=0 max=6"));
}

/// A rewriting that is bad with numbers does not excuse its own results.
TEST(Judge, lost_digits_are_no_roundings) {
  const auto made_by = [](const std::string& text) {
    return parse("graph (x: f32[3]) -> (y) {\n  much = const f32[] {1e9}\n  " + text + "\n}");
  };
  const std::vector<Tensor> in{Tensor::of({3}, std::vector<float>{1, 2, 3})};
  for (const std::string last : {"Round(x)", "Relu(x)"}) {
    auto lossy = last;
    lossy.replace(lossy.find('x'), 1, "b");
    const auto original = made_by("y = " + last),
               now = made_by("a = Add(x, much)\n  b = Subtract(a, much)\n  y = " + lossy);
    EXPECT_TRUE(judge_rewriting(original, in, original).clean());
    EXPECT_FALSE(judge_rewriting(original, in, now).clean()) << last;
    EXPECT_TRUE(judge_rewriting(now, in, now).clean());
  }
}

TEST(Judge, what_is_drawn_is_drawn_in_the_same_way) {
  const auto drawn = [](const std::string& most) {
    return parse(
        "graph () -> (y) {\n  s = const i64[1] {4}\n  low = const f32[] {0}\n  high = const f32[] {" + most +
        "}\n  r = RandomUniform(s, low, high) output_type=f32\n  y = Relu(r)\n}");
  };
  EXPECT_TRUE(judge_rewriting(drawn("1"), {}, drawn("1")).clean());
  EXPECT_FALSE(judge_rewriting(drawn("1"), {}, drawn("100")).clean());
}

TEST(Judge, results_that_are_inputs_or_constants) {
  const auto original = parse(R"(graph (x: f32[2]) -> (a, b) {
  a = Identity(x)
  two = const f32[2] {1, 1}
  b = Add(two, two)
})");
  auto g = original;
  rewrite(g);
  g.set_result(0, g.find_value("x"));
  ASSERT_TRUE(g.constant(g.results()[1].value));
  EXPECT_TRUE(judge_rewriting(original, inputs_of(original), g).clean());
  EXPECT_FALSE(judge_rewriting(original, inputs_of(original), parse(R"(graph (x: f32[2]) -> (a, b) {
  a = Identity(x)
  b = const f32[2] {2, 3}
})"))
                   .clean());
}

}  // namespace
}  // namespace lamina::checking::judge_test
