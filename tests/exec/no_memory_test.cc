/// Allocations that fail, each in turn: what throws leaves all that it touched fit for use.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/stable_vector.h"
#include "lamina/lamina.h"
#include "tests/support/allocations.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

using allocations::Shortage;

ProgramOptions options_for(int threads) {
  ProgramOptions options;
  options.threads = threads;
  options.rewrite = [](Graph& graph, const std::vector<Carried>&) {
    Ledger ledger;
    optimize(graph, {}, ledger);
    return ledger;
  };
  return options;
}

/// A model and what is done with one request of it: inputs run by run.
struct Case {
  std::string graph;
  std::vector<std::vector<Tensor>> runs;
  int threads = 1;
};

/// One life of a request, in pieces that may fail.
class Life {
 public:
  explicit Life(const Case& c) : case_(c), graph_(parse(c.graph)) {
    VariableValues variables;
    InterpreterOptions options;
    options.variables = &variables;
    for (const auto& inputs : c.runs) wanted_.push_back(interpret(graph_, inputs, options));
  }

  std::size_t pieces() const { return 2 + 2 * case_.runs.size(); }

  void begin() {
    runner_.reset();
    program_.reset();
  }

  void do_piece(std::size_t piece) {
    if (piece == 0) {
      program_ =
          std::make_shared<Program>(graph_, options_for(case_.threads), std::make_shared<ModelWeights>());
      return;
    }
    if (piece == 1) {
      runner_.emplace(program_);
      return;
    }
    const auto& inputs = case_.runs[run_of(piece)];
    if (piece % 2 == 0) {
      for (std::size_t i = 0; i < inputs.size(); ++i) runner_->set_input(i, inputs[i]);
      // Every other run writes into memory of the caller.
      const auto& first = wanted_[run_of(piece)][0];
      runner_->set_output(0, piece % 4 == 0 ? Tensor(first.element_type(), first.shape()) : Tensor());
    } else {
      runner_->run();
    }
  }

  bool runs(std::size_t piece) const { return piece > 1 && piece % 2 == 1; }

  void check_no_results() const {
    for (std::size_t r = 0; r < graph_.results().size(); ++r) EXPECT_FALSE(runner_->output(r).valid());
  }

  void check(std::size_t piece) const {
    const auto& wanted = wanted_[run_of(piece)];
    for (std::size_t r = 0; r < wanted.size(); ++r) expect_close(runner_->output(r), wanted[r], "result");
  }

 private:
  static std::size_t run_of(std::size_t piece) { return (piece - 2) / 2; }

  const Case& case_;
  Graph graph_;
  std::vector<std::vector<Tensor>> wanted_;
  std::shared_ptr<const Program> program_;
  std::optional<Runner> runner_;
};

/// False when the whole life went by without an n-th allocation.
bool live(Life& life, std::size_t n, Shortage shortage) {
  life.begin();
  allocations::fail_at(n, shortage);
  bool thrown = false;
  for (std::size_t piece = 0; piece < life.pieces();) {
    try {
      life.do_piece(piece);
    } catch (const std::exception& e) {
      const bool failed = allocations::end_failures();
      EXPECT_TRUE(failed && !thrown) << "piece " << piece << ": " << e.what();
      if (!failed || thrown) return false;
      thrown = true;
      if (life.runs(piece)) life.check_no_results();
      continue;  // there is memory again
    }
    const allocations::Pause pause;
    if (life.runs(piece)) life.check(piece);
    ++piece;
  }
  return allocations::end_failures();
}

/// The allocation that fails next. A debug build checks the graph after each rewrite, which allocates a
/// hundred times as often as the rest: it leaves out ever more of the later ones.
constexpr std::size_t after(std::size_t n) {
#ifdef NDEBUG
  return n + 1;
#else
  return n + 1 + n / 64;
#endif
}

void check(const Case& c, Shortage shortage) {
  Life life(c);
  std::size_t n = 1;
  while (live(life, n, shortage)) {
    ASSERT_FALSE(::testing::Test::HasFailure()) << "allocation " << n << " failed\n" << c.graph;
    n = after(n);
  }
  ASSERT_FALSE(::testing::Test::HasFailure()) << "allocation " << n << " failed\n" << c.graph;
  EXPECT_GT(n, 100u);
  ::testing::Test::RecordProperty("allocations", static_cast<int>(n));
}

Tensor floats(const Dims& shape, std::uint64_t seed) { return seeded_tensor(ElementType::f32, shape, seed); }

/// Two shapes in turn: plans are found again and made anew, memory grows.
Case changing_shapes() {
  return {"graph (x: f32[N,4]) -> (y) {\n w = const f32[4,5] seed(1)\n m = MatMul(x, w)\n y = Relu(m)\n}\n",
          {{floats({2, 4}, 1)}, {floats({3, 4}, 2)}, {floats({2, 4}, 3)}}};
}

Case convolution() {
  return {"graph (x: f32[1,4,6,6]) -> (y) {\n w = const f32[8,4,3,3] seed(1)\n y = Convolution(x, w)\n}\n",
          {{floats({1, 4, 6, 6}, 1)}}};
}

Case unaligned_input() {
  Case c = changing_shapes();
  c.runs.resize(2);
  for (auto& inputs : c.runs) {
    const auto memory = std::make_shared<Tensor>(ElementType::u8, Dims{std::int64_t(inputs[0].bytes()) + 1});
    std::memcpy(memory->raw() + 1, inputs[0].raw(), inputs[0].bytes());
    inputs[0] = Tensor::share(ElementType::f32, inputs[0].shape(), memory, memory->raw() + 1);
  }
  return c;
}

/// How many numbers are not 0 is known while running: a waiting part, with a plan for each count.
Case waiting_part() {
  const auto x = [](std::vector<float> v) { return Tensor::of({std::int64_t(v.size())}, v); };
  return {
      "graph (x: f32[4]) -> (y) {\n i = NonZero(x)\n p = const i64[2] {1,0}\n t = Transpose(i, p)\n f = "
      "Convert(t) destination_type=f32\n y = Exp(f)\n}\n",
      {{x({1, 0, 2, 0})}, {x({1, 2, 3, 0})}, {x({0, 1, 0, 2})}}};
}

Case bodies() {
  const auto flag = [](bool v) { return Tensor::scalar<bool>(v); };
  return {
      "graph (c: boolean[], x: f32[N]) -> (y) {\n y = If(c, x) {\n body graph (a: f32[N]) -> (b) {\n b = "
      "Relu(a)\n }\n body graph (a: f32[N]) -> (b) {\n b = Concat(a, a) axis=0\n }\n }\n}\n",
      {{flag(true), floats({3}, 1)}, {flag(false), floats({4}, 2)}}};
}

/// One variable that stays as large as it is, and one that grows.
Case variables() {
  return {
      "graph (x: f32[1,3]) -> (y, g) {\n z = const f32[1,3] {1,2,3}\n v = ReadValue(z) variable_id=\"v\"\n "
      "y = Add(v, x)\n a = Assign(y) variable_id=\"v\"\n h = ReadValue() variable_id=\"h\" "
      "variable_shape=shape[?,3] variable_type=f32\n g = Concat(h, x) axis=0\n b = Assign(g) "
      "variable_id=\"h\"\n}\n",
      {{floats({1, 3}, 1)}, {floats({1, 3}, 2)}, {floats({1, 3}, 3)}}};
}

struct Named {
  const char* name;
  Case (*make)();
};
class EachAllocation : public ::testing::TestWithParam<Named> {};

TEST_P(EachAllocation, fails_once) { check(GetParam().make(), Shortage::once); }
TEST_P(EachAllocation, fails_and_all_that_follow) { check(GetParam().make(), Shortage::lasting); }

INSTANTIATE_TEST_SUITE_P(NoMemory, EachAllocation,
                         ::testing::Values(Named{"changing_shapes", changing_shapes},
                                           Named{"convolution", convolution},
                                           Named{"unaligned_input", unaligned_input},
                                           Named{"waiting_part", waiting_part}, Named{"bodies", bodies},
                                           Named{"variables", variables}),
                         [](const auto& info) { return info.param.name; });

/// What a graph keeps its nodes in: the next elements have a block of their own, that of the failure or not.
TEST(NoMemory, of_a_vector_whose_elements_stay) {
  for (std::size_t n = 1; n <= 2; ++n) {
    StableVector<int> all(std::vector<int>{0, 1, 2, 3});
    allocations::fail_at(n);
    EXPECT_THROW(all.push_back(4), std::bad_alloc);
    EXPECT_TRUE(allocations::end_failures());
    std::vector<const int*> where;
    for (int i = 4; i < 100; ++i) {
      all.push_back(i);
      where.push_back(&all[std::size_t(i)]);
    }
    for (std::size_t i = 4; i < 100; ++i) EXPECT_EQ(where[i - 4], &all[i]) << n;
  }
}

/// The arena of a larger shape could not be had (seen as a crash of the run after it).
TEST(NoMemory, a_run_after_one_without_memory) {
  const auto g = parse(
      "graph (x: f32[N,1]) -> (y) {\n o = const i64[2] {1,0}\n t = Transpose(x, o)\n m = MatMul(x, t)\n "
      "a = Sin(m)\n r = const i64[1] {1}\n y = ReduceSum(a, r)\n}\n");
  Runner runner(std::make_shared<Program>(g, ProgramOptions{}, std::make_shared<ModelWeights>()));
  const auto small = floats({4, 1}, 1);
  runner.set_input(0, small);
  runner.run();
  const auto huge = floats({1 << 19, 1}, 2);  // its square has a terabyte
  runner.set_input(0, huge);
  EXPECT_THROW(runner.run(), std::exception);
  EXPECT_FALSE(runner.output(0).valid());
  EXPECT_THROW(runner.run(), std::exception);
  runner.set_input(0, small);
  runner.run();
  expect_close(runner.output(0), interpret(g, {small})[0], "y");
}

/// y = Relu(x), of any batch. Its file goes at once, unless a path is given.
Model relu_model(std::string path = {}) {
  const bool keep = !path.empty();
  if (!keep)
    path = (std::filesystem::temp_directory_path() / fmt::format("lamina_{}.xml", ::getpid())).string();
  std::ofstream(path) << R"(<net name="n" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="?,4" element_type="f32"/>
<output><port id="0"><dim>-1</dim><dim>4</dim></port></output></layer>
<layer id="1" name="y" type="Relu" version="opset1"><input><port id="0"><dim>-1</dim><dim>4</dim></port></input>
<output><port id="1"><dim>-1</dim><dim>4</dim></port></output></layer>
<layer id="2" name="r" type="Result" version="opset1"><input><port id="0"><dim>-1</dim><dim>4</dim></port></input>
</layer></layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
<edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>)";
  Model model(path);
  if (!keep) std::filesystem::remove(path);
  return model;
}

/// A request that cannot be given back to its pool, a pool that cannot grow: the public interface in small.
TEST(NoMemory, of_a_compiled_model) {
  const Model model = relu_model();
  const auto x = floats({2, 4}, 1);
  Options options;
  options.threads = 1;
  const Tensor wanted = CompiledModel(model, options)(x);
  bool more = true;
  for (std::size_t n = 1; more; n = after(n)) {
    std::optional<CompiledModel> compiled;
    allocations::fail_at(n);
    for (int piece = 0; piece < 3;) try {
        if (piece == 0)
          compiled.emplace(model, options);
        else if (const auto y = (*compiled)(x); true) {
          const allocations::Pause pause;
          EXPECT_TRUE(y.same_as(wanted)) << n;
        }
        ++piece;
      } catch (const std::exception& e) {
        ASSERT_TRUE(allocations::end_failures()) << n << ": " << e.what();
      }
    more = allocations::end_failures();
  }
}

/// An entry of CACHE_DIR that there is no memory for is a line in the log; the run goes on.
TEST(NoMemory, of_an_entry_of_the_cache) {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("lamina_cache_{}", ::getpid());
  std::filesystem::create_directories(folder);
  const Model model = relu_model((folder / "m.xml").string());
  std::size_t warnings = 0;
  Options options;
  options.threads = 1;
  options.cache_dir = (folder / "cache").string();
  options.log = [&](LogLevel level, std::string_view line) {
    warnings += level == LogLevel::warning && line.find("cache: not kept: out of memory") == 0;
  };
  const auto x = floats({2, 4}, 1);
  const Tensor wanted = CompiledModel(model, options)(x);
  std::size_t runs_with_warning = 0;
  const auto run_with_failure = [&](std::size_t n) {
    std::filesystem::remove_all(folder / "cache");
    const CompiledModel compiled(model, options);
    warnings = 0;
    bool thrown = false;
    allocations::fail_at(n);
    try {
      const auto y = compiled(x);
      const allocations::Pause pause;
      EXPECT_TRUE(y.same_as(wanted)) << n;
    } catch (const std::exception&) {
      thrown = true;
    }
    const bool failed = allocations::end_failures();
    EXPECT_FALSE(thrown && warnings != 0) << n;
    runs_with_warning += warnings;
    return failed;
  };
  for (std::size_t n = 1; run_with_failure(n);) n += 1 + n / 80;
  EXPECT_GT(runs_with_warning, 5U);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace lamina::testing
