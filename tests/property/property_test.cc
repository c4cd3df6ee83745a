/// Random graphs: rewritten, planned and run, they give what the interpreter gives.
///
/// A fixed set of seeds runs as a test: LAMINA_SEED moves it, LAMINA_GRAPHS says how many, LAMINA_GRAPH runs
/// one seed alone, LAMINA_VERBOSE says what they reach. With LAMINA_SOAK_MINUTES, Property.soak goes on with
/// fresh seeds and every rule alone on each graph (LAMINA_RULES_ALONE=N: N of them). Graphs that have failed
/// once are in cases/*.txt.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "exec/runner.h"
#include "graph/text.h"
#include "ops/operators.h"
#include "rules/optimize.h"
#include "tests/property/check.h"
#include "tests/property/operators.h"
#include "tests/property/shrink.h"

namespace lamina::testing {
namespace {

// A graph that crashes or hangs must be known by its seed.
char running[64];

void say_which(int signal) {
  const auto said = ::write(2, running, std::strlen(running));
  static_cast<void>(said);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void watch(std::uint64_t seed) {
  fmt::format_to_n(running, sizeof(running) - 1, "\nthe graph of seed {} was running\n{}", seed, '\0');
  for (const int s : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL, SIGALRM}) ::signal(s, say_which);
  ::alarm(300);
}

std::string report(const Example& example, const Setting& setting, const std::string& what) {
  const auto fails = [&](const Graph& g) {
    const Example e(g, example.seed());
    return e.unstable().empty() && !problem(e, setting).empty();
  };
  const auto small = shrunk(example.graph(), fails);
  const Example again(small, example.seed());
  return fmt::format(
      "seed {} (again: LAMINA_GRAPH={} property_tests)\n{}\n{}\nthe graph:\n{}\nshrunk:\n{}\nwhich says: {}",
      example.seed(), example.seed(), to_string(setting), what, print_graph(example.graph()).text,
      print_graph(small, {true, 16}).text, problem(again, setting));
}

struct Counts {
  std::size_t graphs = 0, unstable = 0, runs = 0, failures = 0;
  std::map<std::string, std::size_t> reasons, operators, rules, kernels, alone;
};

/// On how many graphs the rule that came least was tried alone.
std::size_t least_alone(const Counts& counts) {
  std::size_t least = counts.graphs;
  for (const auto& rule : all_rules()) {
    const auto found = counts.alone.find("only " + rule.name);
    least = std::min(least, found == counts.alone.end() ? 0 : found->second);
  }
  return least;
}

/// What the graph reaches: rules that fire, kernels that run.
void count_reached(const Example& example, Counts& counts) {
  const auto& unknown = example.with_unknown_sizes();
  const auto& inputs = unknown.graph().inputs();
  const bool named = std::any_of(inputs.begin(), inputs.end(),
                                 [&](ValueId v) { return !unknown.graph().type(v).shape.known(); });
  ++counts
        .reasons[named ? fmt::format("unknown sizes, run on {}", unknown.runs().size()) : "no unknown sizes"];
  Graph graph = example.graph();
  Ledger ledger;
  optimize(graph, {}, ledger);
  for (const auto& [rule, count] : ledger.counts()) counts.rules[rule] += count.hits;
  const auto program = std::make_shared<Program>(graph, ProgramOptions{}, std::make_shared<ModelWeights>());
  Runner runner(program);
  for (std::size_t i = 0; i < example.runs()[0].inputs.size(); ++i)
    runner.set_input(i, example.runs()[0].inputs[i]);
  runner.run();
  for (const auto& plan : runner.plans())
    for (const auto& step : plan->steps) ++counts.kernels[step.label];
}

void print(const Counts& counts) {
  for (const auto* part : {&counts.reasons, &counts.operators, &counts.rules, &counts.kernels}) {
    for (const auto& [name, n] : *part) fmt::print("{:>7}  {}\n", n, name);
    fmt::print("\n");
  }
}

std::optional<std::uint64_t> number_of(const char* variable) {
  const char* text = std::getenv(variable);
  return text ? std::optional<std::uint64_t>(std::strtoull(text, nullptr, 10)) : std::nullopt;
}

void try_graph(std::uint64_t seed, std::size_t rules_alone, Counts& counts) {
  watch(seed);
  const Example example(random_graph(seed), seed);
  ++counts.graphs;
  for (auto id : example.graph().order()) ++counts.operators[example.graph().node(id).op.name()];
  if (!example.unstable().empty()) {
    ++counts.unstable;
    ++counts.reasons[example.unstable()];
    return;
  }
  const auto failures = counts.failures;
  for (const auto& setting : some_settings(seed, rules_alone)) {
    if (setting.rules.rfind("only ", 0) == 0) {
      ++counts.alone[setting.rules];
      if (!rewrites(example, setting)) continue;  // as with none
    }
    ++counts.runs;
    const auto found = problem(example, setting);
    if (found.empty()) continue;
    ++counts.failures;
    ADD_FAILURE() << report(example, setting, found);
    break;
  }
  if (std::getenv("LAMINA_VERBOSE") && counts.failures == failures) count_reached(example, counts);
  ::alarm(0);
}

std::uint64_t first_seed() { return 1000003 * number_of("LAMINA_SEED").value_or(0); }

TEST(Property, random_graphs) {
  Counts counts;
  const auto alone = number_of("LAMINA_GRAPH");
  const auto first = alone.value_or(first_seed());
  const auto number = alone ? 1 : number_of("LAMINA_GRAPHS").value_or(1000);
  for (std::uint64_t seed = first; seed < first + number && counts.failures < 10; ++seed)
    try_graph(seed, alone ? all_rules().size() : 1, counts);
  if (alone) return;
  // The generator must not wither: enough graphs count, and they hold enough different operators.
  EXPECT_LT(counts.unstable * 4, counts.graphs);
  if (number >= 300 && counts.failures == 0) {
    EXPECT_GT(counts.operators.size(), 100u);
  }
  if (std::getenv("LAMINA_VERBOSE")) print(counts);
}

TEST(Property, the_same_seed_gives_the_same_graph) {
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    const auto a = print_graph(random_graph(seed)), b = print_graph(random_graph(seed));
    EXPECT_EQ(a.text, b.text);
    EXPECT_EQ(a.data, b.data);
  }
}

TEST(Property, graphs_that_failed_once) {
  std::vector<std::filesystem::path> files;
  const auto folder = std::filesystem::path(LAMINA_TESTS_FOLDER "/property/cases");
  for (const auto& e : std::filesystem::directory_iterator(folder))
    if (e.path().extension() == ".txt") files.push_back(e.path());
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    SCOPED_TRACE(file.filename().string());
    std::stringstream text;
    text << std::ifstream(file).rdbuf();
    for (const std::uint64_t seed : {1, 24}) {  // 24: tensors of the caller at any element
      const Example example(parse_graph(text.str(), operators()), seed);
      EXPECT_EQ(example.unstable(), "");
      if (!example.unstable().empty()) continue;
      for (const auto& setting : every_setting())
        EXPECT_EQ(problem(example, setting), "") << to_string(setting);
    }
  }
}

TEST(Property, soak) {
  const char* minutes = std::getenv("LAMINA_SOAK_MINUTES");
  if (!minutes) GTEST_SKIP() << "LAMINA_SOAK_MINUTES is not set";
  const auto start = std::chrono::steady_clock::now();
  const auto passed = [&] {
    return std::chrono::duration<double, std::ratio<60>>(std::chrono::steady_clock::now() - start).count();
  };
  const auto rules_alone = number_of("LAMINA_RULES_ALONE").value_or(all_rules().size());
  Counts counts;
  auto seed = first_seed();
  double said = 0;
  const auto say = [&] {
    fmt::print(
        stderr,
        "{:.0f} min: seeds {} to {}: {} graphs, {} of them unstable, {} runs, each rule alone on {} or "
        "more, {} failures\n",
        passed(), first_seed(), seed, counts.graphs, counts.unstable, counts.runs, least_alone(counts),
        counts.failures);
    said = passed();
  };
  for (; passed() < std::strtod(minutes, nullptr) && counts.failures < 20; ++seed) {
    try_graph(seed, rules_alone, counts);
    if (passed() > said + 1) say();
  }
  say();
}

}  // namespace
}  // namespace lamina::testing
