/// Sweeps oneDNN's implementations over shapes: every offer for a layer is run on its own, on 1, 2 and 3
/// threads, and judged by sums that are computed from the definition, in doubles. docs/onednn.md says
/// what came of it.
#include <CLI/CLI.hpp>
#include <chrono>
#include <fstream>
#include <iostream>
#include <random>

#include "base/cpu.h"
#include "base/element_types.h"
#include "base/error.h"
#include "tests/sweep/check.h"
#include "tests/sweep/run.h"

namespace lamina::sweep {
namespace {

struct Options {
  std::vector<std::string> lines, files, families{"conv", "deconv", "matmul", "other"},
      types{"f32", "bf16", "i8", "u8"};
  std::string max_isa = "native";
  std::uint64_t seed = 0;
  std::size_t cases = 1000, most_wrong = 50;
  double minutes = 1e9, work = 4e8, megabytes = 150;
  bool edges = false, refusals = false, progress = false;
  CheckOptions check;
};

/// What was run of one family, and by what.
struct Count {
  std::size_t cases = 0, runs = 0, wrong = 0;
};

class Sweep {
 public:
  explicit Sweep(const Options& options) : o_(options) {}

  bool run() {
    if (!o_.lines.empty() || !o_.files.empty())
      run_lines();
    else
      run_families();
    report();
    return wrong_ == 0;
  }

 private:
  using Clock = std::chrono::steady_clock;

  void run_lines() {
    auto lines = o_.lines;
    for (const auto& file : o_.files) {
      std::ifstream in(file);
      if (!in) fail(ErrorCode::bad_file, "{}: cannot be read", file);
      for (std::string line; std::getline(in, line);)
        if (!line.empty() && line[0] != '#') lines.push_back(line);
    }
    for (const auto& line : lines) run_case(case_of(line));
  }

  /// Cases of one family and type, at random or those at edges.
  struct Source {
    std::string family;
    ElementType type;
    SplitMix random;
    std::vector<Case> edges;
    std::size_t cases = 0, runs = 0;
  };

  std::vector<Source> sources() const {
    std::vector<Source> all;
    for (const auto& family : o_.families)
      for (const auto& name : o_.types) {
        const auto type = element_type_named(name);
        if (!type) fail(ErrorCode::bad_option, "\"{}\" is no element type", name);
        if (family == "other" && is_byte(*type)) continue;
        all.push_back({family, *type, SplitMix(o_.seed), {}});
        if (o_.edges) all.back().edges = shuffled(edge_cases(family, *type, bounds()));
      }
    return all;
  }

  std::vector<Case> shuffled(std::vector<Case> cases) const {
    SplitMix random(o_.seed);
    for (auto i = cases.size(); i > 1; --i) std::swap(cases[i - 1], cases[random.below(i)]);
    return cases;
  }

  Bounds bounds() const { return {o_.work, o_.megabytes * 1e6}; }

  /// In turns, so that each has its share of the time.
  void run_families() {
    constexpr std::size_t kTries = 20;  // without any offer, as bf16 where there is none
    auto all = sources();
    const auto begin = Clock::now();
    const auto late = [&] {
      return std::chrono::duration<double>(Clock::now() - begin).count() > o_.minutes * 60;
    };
    for (bool more = true; more;) {
      more = false;
      for (auto& s : all) {
        if (s.cases >= (o_.edges ? s.edges.size() : o_.cases) || (s.cases >= kTries && s.runs == 0)) continue;
        if (late()) return;
        more = true;
        const auto at = s.cases++;
        s.runs += run_case(o_.edges ? s.edges[at] : random_case(s.random, s.family, s.type, bounds()));
      }
    }
  }

  /// How many offers ran.
  std::size_t run_case(const Case& c) {
    set_running(to_line(c));
    watch(300);
    if (o_.progress) fmt::print(stderr, "{}\n", to_line(c));
    const auto outcome = check(c, o_.check);
    ++families_[family_of(c)].cases;
    families_[family_of(c)].runs += outcome.runs;
    for (const auto& label : outcome.labels) ++labels_[label].cases;
    for (const auto& [reason, count] : outcome.refusals) refusals_[reason] += count;
    if (outcome.wrong.empty()) return outcome.runs;
    ++families_[family_of(c)].wrong;
    std::set<std::string> wrong;
    for (const auto& w : outcome.wrong) wrong.insert(w.label);
    for (const auto& label : wrong) ++labels_[label].wrong;
    if (wrong_++ >= o_.most_wrong) return outcome.runs;
    fmt::print("wrong: {}\n", to_line(c));
    for (const auto& w : outcome.wrong)
      fmt::print("  {} on {} thread{}: {}\n", w.label, w.threads, w.threads == 1 ? "" : "s", w.what);
    std::fflush(stdout);
    return outcome.runs;
  }

  void report() const {
    fmt::print("\n{:<44} {:>8} {:>8} {:>6}\n", "family", "cases", "runs", "wrong");
    for (const auto& [name, n] : families_)
      fmt::print("{:<44} {:>8} {:>8} {:>6}\n", name, n.cases, n.runs, n.wrong);
    fmt::print("\n{:<44} {:>8} {:>8} {:>6}\n", "offer", "cases", "", "wrong");
    for (const auto& [name, n] : labels_)
      fmt::print("{:<44} {:>8} {:>8} {:>6}\n", name, n.cases, "", n.wrong);
    if (!o_.refusals) return;
    fmt::print("\nrefused\n");
    for (const auto& [reason, n] : refusals_) fmt::print("{:>8} {}\n", n, reason);
  }

  const Options& o_;
  std::map<std::string, Count> families_, labels_;
  std::map<std::string, std::size_t> refusals_;
  std::size_t wrong_ = 0;
};

int run(const Options& o) {
  if (o.max_isa != "native") limit_isa(o.max_isa);
  fmt::print("{}, {}; seed {}\n", processor_name(), name_of(effective_isa()), o.seed);
  std::fflush(stdout);
  return Sweep(o).run() ? 0 : 1;
}

}  // namespace
}  // namespace lamina::sweep

int main(int argc, char** argv) {
  lamina::sweep::Options o;
  CLI::App app("Sweeps oneDNN's implementations over shapes. Status 1 when a result is wrong.");
  app.add_option("--case", o.lines, "a case, as it is printed (tests/sweep/case.h)");
  app.add_option("files", o.files, "files of cases, one a line, instead of random ones");
  app.add_option("--families", o.families, "conv, deconv, matmul, other (all)")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--types", o.types, "element types: f32, bf16, i8, u8 (all)")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--max-isa", o.max_isa, "native, sse41, avx2 or avx512");
  app.add_option("--seed", o.seed, "of the cases; by default a fresh one");
  app.add_option("--cases", o.cases, "of each family and type (1000)");
  app.add_option("--minutes", o.minutes, "that it takes at most, but for the last case");
  app.add_option("--threads", o.check.threads, "numbers of threads (1,2,3)")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--kernel", o.check.kernel, "whose offers: keys of kernels that begin so (onednn)");
  app.add_option("--work", o.work, "multiply-adds of a case at most (4e8)");
  app.add_option("--megabytes", o.megabytes, "of a case's tensors at most (150)");
  app.add_option("--behind", o.check.behind, "bytes of NaN behind tensors, before what cannot be read (0)");
  app.add_option("--most-wrong", o.most_wrong, "wrong cases that are printed (50)");
  app.add_flag("--edges", o.edges, "sizes at the edges of blocks, instead of random ones");
  app.add_flag("--refusals", o.refusals, "prints why oneDNN was refused");
  app.add_flag("--progress", o.progress, "prints each case before it runs");
  CLI11_PARSE(app, argc, argv);
  if (app.count("--seed") == 0) o.seed = std::random_device()();
  try {
    return lamina::sweep::run(o);
  } catch (const std::exception& e) {
    fmt::print(stderr, "onednn_sweep: {}\n", e.what());
    return 2;
  }
}
