/// Variables kept from run to run: the plan against the interpreter, step by step.
#include <gtest/gtest.h>

#include "rules/widen_half.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

Graph rewritten(Graph graph) {
  Ledger ledger;
  optimize(graph, {}, ledger);
  return graph;
}

std::shared_ptr<const Program> compiled(const Graph& graph) {
  ProgramOptions options;
  options.threads = 2;
  options.rewrite = [](Graph& g, const std::vector<Carried>&) {
    g = rewritten(std::move(g));
    return Ledger();
  };
  const auto program = std::make_shared<Program>(graph, options, std::make_shared<ModelWeights>());
  const_cast<Program&>(*program).plan_ahead();
  return program;
}

/// All steps on the graph as it is and rewritten, by the interpreter and by plans.
void check_steps(const std::string& text, const std::vector<std::vector<Tensor>>& steps) {
  const auto graph = parse(text);
  const auto other = rewritten(graph);
  VariableValues wanted_variables, other_variables;
  InterpreterOptions wanted_options, other_options;
  wanted_options.variables = &wanted_variables;
  other_options.variables = &other_variables;
  Runner plain(compiled(graph)), runner(compiled(other));
  const auto program = compiled(other);
  for (std::size_t s = 0; s < steps.size(); ++s) {
    SCOPED_TRACE(fmt::format("step {}", s));
    const auto wanted = interpret(graph, steps[s], wanted_options);
    const auto again = interpret(other, steps[s], other_options);
    for (auto* r : {&plain, &runner}) {
      for (std::size_t i = 0; i < steps[s].size(); ++i) r->set_input(i, steps[s][i]);
      r->run();
      for (std::size_t i = 0; i < wanted.size(); ++i) expect_close(r->output(i), wanted[i], "output");
      for (std::size_t v = 0; v < program->variables().size(); ++v)
        if (const auto it = wanted_variables.find(program->variables()[v].name); it != wanted_variables.end())
          expect_close(r->variable(v), it->second, it->first);
    }
    for (std::size_t i = 0; i < wanted.size(); ++i) expect_close(again[i], wanted[i], "rewritten");
  }
}

Tensor numbers(std::vector<float> v) { return Tensor::of({std::int64_t(v.size())}, v); }

const char* const kSum =
    "graph (x: f32[2]) -> (y) {\n z = const f32[2] {10,20}\n v = ReadValue(z) variable_id=\"v\"\n y = Add(v, "
    "x)\n "
    "a = Assign(y) variable_id=\"v\"\n}\n";

TEST(Variables, are_kept_from_run_to_run) {
  const auto x = numbers({1, 2});
  check_steps(kSum, {{x}, {x}, {numbers({5, 5})}, {x}});
  Runner runner(compiled(parse(kSum)));
  runner.set_input(0, x);
  for (int i = 0; i < 3; ++i) runner.run();
  EXPECT_EQ(to_floats(runner.output(0)), (std::vector<float>{13, 26}));
}

TEST(Variables, each_request_has_its_own) {
  const auto program = compiled(parse(kSum));
  Runner a(program), b(program);
  a.set_input(0, numbers({1, 1}));
  b.set_input(0, numbers({1, 1}));
  a.run();
  a.run();
  b.run();
  EXPECT_EQ(to_floats(a.output(0)), (std::vector<float>{12, 22}));
  EXPECT_EQ(to_floats(b.output(0)), (std::vector<float>{11, 21}));
}

TEST(Variables, are_read_set_and_reset) {
  Runner runner(compiled(parse(kSum)));
  EXPECT_EQ(to_floats(runner.variable(0)), (std::vector<float>{10, 20}));
  runner.set_input(0, numbers({1, 1}));
  runner.run();
  const auto held = runner.variable(0);
  EXPECT_EQ(to_floats(held), (std::vector<float>{11, 21}));
  auto mine = numbers({0, 0});
  runner.set_variable(0, mine);
  mine.data<float>()[0] = 100;  // it was copied
  runner.run();
  EXPECT_EQ(to_floats(runner.output(0)), (std::vector<float>{1, 1}));
  EXPECT_EQ(to_floats(held), (std::vector<float>{11, 21})) << "what was given out stays";
  runner.reset_variables();
  runner.run();
  EXPECT_EQ(to_floats(runner.output(0)), (std::vector<float>{11, 21}));
  EXPECT_THROW(runner.set_variable(0, numbers({1, 2, 3})), Error);
  EXPECT_THROW(runner.set_variable(0, Tensor(ElementType::i32, {2})), Error);
  EXPECT_THROW(runner.set_variable(0, Tensor()), Error);
  EXPECT_EQ(to_floats(runner.variable(0)), (std::vector<float>{11, 21}));
}

TEST(Variables, a_run_that_fails_changes_none) {
  const auto graph = parse(
      "graph (x: f32[2], i: i64[1]) -> (y, g) {\n z = const f32[2] {10,20}\n v = ReadValue(z) "
      "variable_id=\"v\"\n "
      "y = Add(v, x)\n a = Assign(y) variable_id=\"v\"\n s = const i64[1] {1}\n g = Reshape(y, i) "
      "special_zero=false\n}\n");
  Runner runner(std::make_shared<Program>(graph, ProgramOptions{}, std::make_shared<ModelWeights>()));
  const auto good = Tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{2}),
             bad = Tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{3});
  runner.set_input(0, numbers({1, 1}));
  runner.set_input(1, good);
  runner.run();
  runner.set_input(1, bad);
  EXPECT_THROW(runner.run(), Error);
  EXPECT_FALSE(runner.output(0).valid());
  EXPECT_EQ(to_floats(runner.variable(0)), (std::vector<float>{11, 21}));
  runner.set_input(1, good);
  runner.run();
  EXPECT_EQ(to_floats(runner.output(1)), (std::vector<float>{12, 22}));
}

/// As caches of keys and values are: they begin empty.
TEST(Variables, that_grow) {
  const auto token = [](float v) { return Tensor::of<float>({1, 1, 2}, std::vector<float>{v, v + 1}); };
  const std::string text =
      "graph (x: f32[1,1,2]) -> (m, g) {\n h = ReadValue() variable_id=\"cache\" variable_shape=shape[1,?,2] "
      "variable_type=f32\n g = Concat(h, x) axis=1\n b = Assign(g) variable_id=\"cache\"\n a = const i64[1] "
      "{1}\n m "
      "= ReduceSum(g, a)\n}\n";
  check_steps(text, {{token(1)}, {token(2)}, {token(3)}, {token(4)}, {token(5)}, {token(6)}});
}

/// The first value may be smaller than those that follow; what it is must not be folded into the graph.
TEST(Variables, an_initial_constant_says_nothing_of_later_shapes) {
  const auto token = [](float v) { return Tensor::of<float>({1, 2}, std::vector<float>{v, v + 1}); };
  check_steps(
      "graph (x: f32[1,2]) -> (g, s) {\n z = const f32[0,2] {}\n h = ReadValue(z) variable_id=\"c\" "
      "variable_shape=shape[?,2] variable_type=f32\n g = Concat(h, x) axis=0\n b = Assign(g) "
      "variable_id=\"c\"\n "
      "s = "
      "ShapeOf(h)\n}\n",
      {{token(1)}, {token(2)}, {token(3)}});
}

/// "1<2" for each result 2 that is input 1 in the next run, "<2" where that is another graph's; of each graph
/// that is rewritten.
std::vector<std::string> handed_on(const std::string& text, const Tensor& input) {
  std::vector<std::string> told;
  ProgramOptions options;
  options.rewrite = [&](Graph&, const std::vector<Carried>& carried) {
    told.emplace_back();
    for (const auto& c : carried)
      told.back() += fmt::format("{}<{} ", c.input ? std::to_string(*c.input) : "", c.result);
    return Ledger();
  };
  Runner runner(std::make_shared<Program>(parse(text), options, std::make_shared<ModelWeights>()));
  runner.set_input(0, input);
  runner.run();
  return told;
}

TEST(Variables, rewriting_knows_what_they_hand_on) {
  using Told = std::vector<std::string>;
  EXPECT_EQ(handed_on("graph (x: f32[2]) -> (y, p) {\n z = const f32[2] {1,2}\n v = ReadValue(z) "
                      "variable_id=\"v\"\n u = ReadValue(z) variable_id=\"u\"\n y = Add(v, x)\n p = Exp(u)\n"
                      " a = Assign(y) variable_id=\"v\"\n}\n",
                      numbers({1, 2})),
            Told{"2<2 "});
  EXPECT_EQ(handed_on("graph (x: f32[2]) -> (y) {\n e = Exp(x)\n v = ReadValue(e) variable_id=\"v\"\n"
                      " y = Add(v, x)\n a = Assign(y) variable_id=\"v\"\n}\n",
                      numbers({1, 2})),
            (Told{"<0 ", "1<1 "}));
  EXPECT_EQ(handed_on("graph (x: f32[2]) -> (n, y) {\n z = const f32[] {1}\n v = ReadValue(z) "
                      "variable_id=\"v\"\n n = NonZero(x)\n f = Convert(n) destination_type=f32\n"
                      " axes = const i64[2] {0, 1}\n m = ReduceSum(f, axes)\n y = Add(v, m)\n"
                      " a = Assign(y) variable_id=\"v\"\n}\n",
                      numbers({1, 2})),
            (Told{"1<2 ", "<2 "}));  // what waits for how many there are
}

TEST(Variables, an_initial_value_that_is_computed_of_the_inputs) {
  const std::string text =
      "graph (x: f32[N]) -> (y) {\n e = Exp(x)\n v = ReadValue(e) variable_id=\"v\"\n y = Add(v, x)\n a = "
      "Assign(y) "
      "variable_id=\"v\"\n}\n";
  check_steps(text, {{numbers({1, 2})}, {numbers({3, 4})}});
  Runner runner(compiled(parse(text)));
  EXPECT_FALSE(runner.variable(0).valid());
  runner.set_variable(0, numbers({1, 1, 1}));
  runner.set_input(0, numbers({1, 2, 3}));
  runner.run();
  EXPECT_EQ(to_floats(runner.output(0)), (std::vector<float>{2, 3, 4}));
  runner.reset_variables();
  runner.set_input(0, numbers({0}));
  runner.run();
  EXPECT_EQ(to_floats(runner.output(0)), (std::vector<float>{1}));
}

TEST(Variables, several_reads_one_assign_of_an_input) {
  check_steps(
      "graph (x: f32[2]) -> (y, z) {\n i = const f32[2] {1,2}\n a = ReadValue(i) variable_id=\"v\"\n b = "
      "ReadValue(i) "
      "variable_id=\"v\"\n y = Add(a, x)\n z = Multiply(b, x)\n w = Assign(x) variable_id=\"v\"\n}\n",
      {{numbers({3, 4})}, {numbers({5, 6})}, {numbers({7, 8})}});
}

TEST(Variables, that_change_places) {
  check_steps(
      "graph (x: f32[2]) -> (p, q) {\n i = const f32[2] {1,2}\n j = const f32[2] {3,4}\n a = ReadValue(i) "
      "variable_id=\"a\"\n b = ReadValue(j) variable_id=\"b\"\n p = Add(a, x)\n q = Identity(b)\n s = "
      "Assign(b) "
      "variable_id=\"a\"\n t = Assign(a) variable_id=\"b\"\n}\n",
      {{numbers({0, 0})}, {numbers({0, 0})}, {numbers({0, 0})}});
}

TEST(Variables, nobody_assigns_or_nobody_reads) {
  check_steps(
      "graph (x: f32[2]) -> (y) {\n i = const f32[2] {1,2}\n a = ReadValue(i) variable_id=\"a\"\n b = "
      "ReadValue(i) "
      "variable_id=\"b\"\n y = Add(a, x)\n t = Assign(y) variable_id=\"b\"\n}\n",
      {{numbers({0, 0})}, {numbers({1, 1})}});
}

/// The value of a variable is found by a part that waits for shapes; the assigned value passes through.
TEST(Variables, in_a_waiting_part) {
  check_steps(
      "graph (x: f32[4]) -> (y) {\n v = ReadValue() variable_id=\"v\" variable_shape=shape[1,?] "
      "variable_type=f32\n n = "
      "NonZero(x)\n f = Convert(n) destination_type=f32\n e = Exp(f)\n g = Concat(v, e) axis=1\n y = "
      "Assign(g) "
      "variable_id=\"v\"\n}\n",
      {{numbers({1, 0, 1, 0})}, {numbers({1, 1, 1, 0})}, {numbers({0, 0, 0, 0})}, {numbers({0, 0, 0, 1})}});
}

/// Rules find the same patterns around variables as around inputs, and never take one away.
TEST(Variables, between_layers_that_fuse) {
  const auto x = seeded_tensor(ElementType::f32, {1, 4, 6, 6}, 1);
  check_steps(
      "graph (x: f32[1,4,6,6]) -> (y) {\n z = const f32[1,4,6,6] seed(5)\n w = const f32[4,4,3,3] seed(1)\n "
      "v = "
      "ReadValue(z) variable_id=\"v\"\n a = Add(x, v)\n c = Convolution(a, w) pads_begin=[1,1] "
      "pads_end=[1,1]\n r = "
      "Relu(c)\n t = Assign(r) variable_id=\"v\"\n y = Sigmoid(t)\n}\n",
      {{x}, {x}, {x}});
}

std::string refused(const std::string& text) {
  try {
    Program(parse(text), {}, std::make_shared<ModelWeights>());
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::unsupported);
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
    return e.what();
  }
  return "";
}

void expect_refused(const std::string& text, const std::string& says) {
  EXPECT_NE(refused(text).find(says), std::string::npos) << refused(text);
}

TEST(Variables, what_cannot_be_kept_is_refused) {
  expect_refused("graph (x: f32[2]) -> (x) {\n a = Assign(x) variable_id=\"v\"\n}\n",
                 "variable \"v\" is assigned, but never read");
  expect_refused(
      "graph (x: f32[2]) -> (v) {\n v = ReadValue(x) variable_id=\"v\"\n a = Assign(x) variable_id=\"v\"\n b "
      "= "
      "Assign(x) variable_id=\"v\"\n}\n",
      "assigned 2 times");
  expect_refused(
      "graph (x: f32[2]) -> (v) {\n z = const f32[2] {1,2}\n v = ReadValue(z) variable_id=\"v\"\n c = "
      "Concat(x, x) "
      "axis=0\n a = Assign(c) variable_id=\"v\"\n}\n",
      "variable \"v\" is f32[2], and f32[4] is assigned to it");
  expect_refused(
      "graph (x: f32[2]) -> (v, w) {\n z = const f32[2] {1,2}\n y = const f32[2] {1,3}\n v = ReadValue(z) "
      "variable_id=\"v\"\n w = ReadValue(y) variable_id=\"v\"\n}\n",
      "two initial values");
  expect_refused(
      "graph (x: f32[2]) -> (w) {\n z = const f32[2] {1,2}\n v = ReadValue(z) variable_id=\"v\"\n s = "
      "Exp(v)\n w = "
      "ReadValue(s) variable_id=\"w\"\n}\n",
      "the initial value of variable \"w\" depends on variable \"v\"");
  expect_refused(
      "graph (c: boolean[], x: f32[2]) -> (y) {\n y = If(c, x) {\n body graph (a: f32[2]) -> (b) {\n b = "
      "ReadValue(a) "
      "variable_id=\"v\"\n }\n body graph (a: f32[2]) -> (a) {\n }\n }\n}\n",
      "variables in a body cannot be kept");
  expect_refused("graph (x: f32[2]) -> (v) {\n v = ReadValue() variable_id=\"v\" variable_type=f32\n}\n",
                 "has no initial value");
}

TEST(Variables, of_half_precision_keep_their_type) {
  // rules/widen_half.h computes in f32; what is kept is rounded as the model says.
  Graph graph = parse(
      "graph (x: f16[1]) -> (y) {\n z = const f16[1] {1}\n v = ReadValue(z) variable_id=\"v\" "
      "variable_shape=shape[1] "
      "variable_type=f16\n y = Add(v, x)\n a = Assign(y) variable_id=\"v\"\n}\n");
  EXPECT_FALSE(widen_half(graph).empty());
  const auto program = compiled(rewritten(graph));
  EXPECT_EQ(program->variables().at(0).type.element, ElementType::f16);
  Runner runner(program);
  runner.set_input(0, from_doubles(ElementType::f16, {1}, {0.0001}));
  for (int i = 0; i < 50; ++i) runner.run();
  EXPECT_EQ(to_floats(runner.output(0))[0], 1) << "1.0001 is 1 in f16, each time";
}

}  // namespace
}  // namespace lamina::testing
