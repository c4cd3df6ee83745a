/// Random graphs, written as IR and read again, give what they gave. LAMINA_GRAPHS says how many, LAMINA_SEED
/// moves them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "graph/text.h"
#include "interpreter/interpreter.h"
#include "ops/eval.h"
#include "ops/quantization.h"
#include "rules/optimize.h"
#include "tests/property/check.h"
#include "tests/property/operators.h"
#include "tests/support/mismatch.h"
#include "tests/support/written_ir.h"

namespace lamina::testing {
namespace {

constexpr std::uint64_t kSeeds = 150;

/// A Quantize rounds a number beside a tie: IR's FakeQuantize rounds it behind the zero point, where the next
/// even number is another.
bool rounds_a_tie(const Graph& graph, const std::vector<Tensor>& inputs) {
  constexpr double kBeside = 1e-5;
  bool found = false;
  InterpreterOptions options;
  options.observe = [&](const Graph& g, NodeId id, const std::vector<Tensor>& in,
                        const std::vector<Tensor>&) {
    if (!g.node(id).op.is<Quantize>()) return;
    const auto scales = to_doubles(in[1]);
    for (const double x : to_doubles(in[0]))
      for (std::size_t i = 0; i < scales.size() && i < 64; ++i) {
        const double level = x / scales[i];
        found = found || std::fabs(level - std::floor(level) - 0.5) < kBeside;
      }
  };
  interpret(graph, inputs, options);
  return found;
}

/// What is wrong; empty when nothing is.
std::string problem_when_written(const Example& example, const WriteIrOptions& options, bool optimised) {
  Graph graph = example.graph();
  if (optimised) {
    Ledger ledger;
    RuleOptions rewriting;
    rewriting.last = RuleSet::portable;
    rewriting.for_file = true;
    optimize(graph, rewriting, ledger);
  }
  RereadIr again;
  try {
    again = written_and_read(graph, options);
  } catch (const Error& error) {
    const std::string why = error.what();
    return why.find("IR has no operator for") == std::string::npos &&
                   why.find("IR 10 has the operators") == std::string::npos
               ? why
               : "";
  }
  for (const auto& run : example.runs()) {
    const auto got = interpret(again.loaded.graph, run.inputs);
    for (std::size_t i = 0; i < got.size(); ++i)
      if (const auto why = mismatch(got[i], run.wanted[i]);
          !why.empty() && !rounds_a_tie(example.graph(), run.inputs))
        return fmt::format("result {}: {}", i, why);
  }
  return {};
}

TEST(Property, written_as_ir) {
  std::uint64_t first = 1;
  if (const char* more = std::getenv("LAMINA_SEED")) first += 1000 * std::strtoull(more, nullptr, 10);
  std::uint64_t number = kSeeds;
  if (const char* graphs = std::getenv("LAMINA_GRAPHS")) number = std::strtoull(graphs, nullptr, 10);
  std::size_t tried = 0;
  for (std::uint64_t seed = first; seed < first + number; ++seed) {
    const Example example(random_graph(seed), seed);
    if (!example.unstable().empty()) continue;
    ++tried;
    const auto why = problem_when_written(example, {seed % 3 == 0 ? 10 : 11}, seed % 2 == 0);
    EXPECT_EQ(why, "") << "seed " << seed << "\n" << print_graph(example.graph()).text;
  }
  EXPECT_GT(tried, number / 3);
}

}  // namespace
}  // namespace lamina::testing
