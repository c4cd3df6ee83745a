/// Random graphs with bf16: what is rewritten for a processor on which everything pays gives on kernels what
/// the interpreter gives for the rewritten graph, layer by layer; results are near those of f32.
#include <gtest/gtest.h>

#include <cstdlib>

#include "check/check.h"
#include "exec/runner.h"
#include "graph/text.h"
#include "rules/optimize.h"
#include "tests/property/check.h"
#include "tests/property/operators.h"
#include "tests/support/findings_text.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

/// Computing takes long there, so that bf16 gains wherever it may.
const Machine& slow_machine() {
  static const Machine machine = [] {
    Machine m = host();
    m.rates.products = 1e-4;
    return m;
  }();
  return machine;
}

RuleOptions options_of(bool bf16) {
  RuleOptions o;
  o.verify = o.bf16 = true;
  o.machine = &slow_machine();
  o.last = bf16 ? RuleSet::precision : RuleSet::chains;
  return o;
}

/// Empty when all is well; `products`: how many became bf16.
std::string problem_of(const Example& example, std::size_t& products) {
  if (!example.unstable().empty()) return {};
  const Graph& original = example.graph();
  const auto& inputs = example.runs()[0].inputs;
  Graph before = original, after = original;
  Ledger unused, ledger;
  optimize(before, options_of(false), unused);
  optimize(after, options_of(true), ledger);
  const auto fired = ledger.of_rule("bf16-product").size();
  if (fired == 0) return {};
  products += fired;
  const auto program =
      std::make_shared<const Program>(after, ProgramOptions{}, std::make_shared<ModelWeights>());
  Runner runner(program);
  for (std::size_t i = 0; i < inputs.size(); ++i) runner.set_input(i, inputs[i]);
  runner.run();
  if (runner.plans().size() != 1) return {};
  checking::Run run{original, inputs, runner.plans(), {}};
  for (std::size_t r = 0; r < original.results().size(); ++r)
    run.outputs.push_back({original.results()[r].name, runner.output(r), {}});
  run.before_bf16 = [&](const checking::RunPart&) { return before; };
  const auto found = checking::check_run(run);
  return found.faults() == 0 ? "" : text_of(found) + "\n" + print_graph(after, {true, 16}).text;
}

TEST(Property, bf16) {
  if (!multiplies_bf16(host())) GTEST_SKIP() << "this processor has no bf16 instructions";
  const char* moved = std::getenv("LAMINA_SEED");
  const char* count = std::getenv("LAMINA_GRAPHS");
  const auto first = 7000003 + 1000003 * (moved ? std::strtoull(moved, nullptr, 10) : 0);
  const auto graphs = count ? std::strtoull(count, nullptr, 10) : 300;
  std::size_t products = 0;
  for (auto seed = first; seed < first + graphs; ++seed) {
    const Example example(random_graph(seed), seed);
    try {
      const auto problem = problem_of(example, products);
      EXPECT_EQ(problem, "") << "seed " << seed;
    } catch (const std::exception& e) {
      ADD_FAILURE() << "seed " << seed << ": " << e.what() << print_graph(example.graph(), {true, 16}).text;
    }
  }
  if (std::getenv("LAMINA_VERBOSE")) fmt::print("{} products on {} graphs\n", products, graphs);
  EXPECT_GT(10 * products + 100, graphs);
}

}  // namespace
}  // namespace lamina::testing
