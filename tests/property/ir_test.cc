/// Random graphs, written as IR and read again, give what they gave. LAMINA_GRAPHS says how many, LAMINA_SEED
/// moves them.
#include <gtest/gtest.h>

#include <cstdlib>

#include "graph/text.h"
#include "interpreter/interpreter.h"
#include "rules/optimize.h"
#include "tests/property/check.h"
#include "tests/property/operators.h"
#include "tests/support/mismatch.h"
#include "tests/support/written_ir.h"

namespace lamina::testing {
namespace {

constexpr std::uint64_t kSeeds = 150;

/// What is wrong; empty when nothing is.
std::string problem_when_written(const Example& example, const WriteIrOptions& options, bool optimised) {
  Graph graph = example.graph();
  if (optimised) {
    Ledger ledger;
    OptimizeOptions rewriting;
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
      if (const auto why = mismatch(got[i], run.wanted[i]); !why.empty())
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
