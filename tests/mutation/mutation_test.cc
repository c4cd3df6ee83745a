/// Models of every format, changed as graphs and written as well-formed files again: each ends in right
/// results or in an Error of one line, in bounded time and memory.
///
/// A fixed set of mutants runs as a test. LAMINA_SEED moves it, LAMINA_MUTANTS says how many, LAMINA_MUTANT
/// tries one alone. With LAMINA_SOAK_MINUTES, Mutation.soak goes on with fresh ones. What fails is saved in
/// the folder that LAMINA_FAILED_MODELS names (lamina-mutants in the folder of temporary files); it belongs
/// into tests/mutation/cases. The models are the operators' examples and what tests/formats has kept in the
/// folder LAMINA_SEED_MODELS (of the build, when that is not set).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>

#include "tests/mutation/mutate.h"
#include "tests/mutation/seeds.h"
#include "tests/mutation/survive.h"
#include "tests/mutation/watched.h"

namespace lamina::testing {
namespace {

constexpr std::uint64_t kMutants = 6000;  // of the fixed set, some seconds

std::optional<std::uint64_t> number_of(const char* variable) {
  const char* text = std::getenv(variable);
  return text ? std::optional<std::uint64_t>(std::strtoull(text, nullptr, 10)) : std::nullopt;
}

std::filesystem::path failed_folder() {
  const char* folder = std::getenv("LAMINA_FAILED_MODELS");
  return folder ? std::filesystem::path(folder) : std::filesystem::temp_directory_path() / "lamina-mutants";
}

WatchOptions watch_options() {
  WatchOptions options;
#ifdef __SANITIZE_ADDRESS__
  options.processor_seconds *= 6;
#endif
  return options;
}

/// The seeds as trees, and all their parts.
class Mutants {
 public:
  explicit Mutants(const std::vector<Seed>& seeds) {
    for (const auto& seed : seeds) {
      try {
        by_format_[seed.format].push_back(tree_of(seed.format, seed.files));
      } catch (const std::exception&) {  // a format's text where its bytes were expected, or the like
        continue;
      }
      banks_[seed.format].add(by_format_[seed.format].back().tree);
      names_[seed.format].push_back(seed.name);
    }
  }

  std::size_t formats() const { return by_format_.size(); }
  /// The mutant of a number; the same for equal numbers and seeds. Formats take turns.
  Seed mutant(std::uint64_t number) const {
    auto it = by_format_.begin();
    std::advance(it, static_cast<std::ptrdiff_t>(number % by_format_.size()));
    SplitMix random(number);
    const auto at = random.below(it->second.size());
    const auto model = mutated(it->second[at], banks_.at(it->first), random);
    return {fmt::format("{}_{}", names_.at(it->first)[at], number), it->first, files_of(model)};
  }

 private:
  std::map<TreeFormat, std::vector<TreeModel>> by_format_;
  std::map<TreeFormat, std::vector<std::string>> names_;
  std::map<TreeFormat, PartBank> banks_;
};

/// Problems that differ in numbers and names only are one.
std::string kind_of(const std::string& problem) {
  std::string out;
  bool quoted = false;
  for (const char c : problem) {
    if (c == '"' || c == '\'') quoted = !quoted;
    if (!quoted && std::isdigit(static_cast<unsigned char>(c)) == 0 && c != '"') out += c;
  }
  return out.substr(0, 90);
}

/// Fails once for each kind of problem, and saves the smallest model of it.
void report(const std::vector<Failure>& failures, const std::function<Seed(std::uint64_t)>& model) {
  std::map<std::string, std::vector<const Failure*>> kinds;
  for (const auto& f : failures) kinds[kind_of(f.what)].push_back(&f);
  for (const auto& [kind, all] : kinds) {
    Seed smallest;
    const Failure* which = nullptr;
    for (const auto* f : all) {
      auto seed = model(f->number);
      if (which && seed.files.model.size() >= smallest.files.model.size()) continue;
      smallest = std::move(seed);
      which = f;
    }
    ADD_FAILURE() << which->what << "\n  mutant " << which->number << ", " << all.size()
                  << " times; saved as " << save(smallest, failed_folder());
  }
}

/// Tries so many mutants from one on.
void try_mutants(const Mutants& mutants, std::uint64_t first, std::uint64_t count) {
  const auto all = [&](std::uint64_t number) { return mutants.mutant(number); };
  const bool verbose = std::getenv("LAMINA_VERBOSE") != nullptr;
  const auto failures = watched(
      first, count,
      [&](std::uint64_t number) {
        const auto seed = all(number);
        const auto found = survive(seed.format, seed.files, number);
        if (verbose)
          std::fprintf(stderr, "%s %s %s %s\n", std::string(name_of(seed.format)).c_str(),
                       std::string(name_of(found.reached)).c_str(), seed.name.c_str(), found.error.c_str());
        return found.problem;
      },
      watch_options());
  report(failures, all);
}

/// What is wrong with models that were not changed, each in a child and with several inputs: their sizes and
/// numbers decide whether a model fails.
void try_models(const std::vector<Seed>& models) {
  constexpr std::uint64_t kInputs = 8;
  const auto failures = watched(
      0, kInputs * models.size(),
      [&](std::uint64_t i) {
        const auto& model = models[i / kInputs];
        return survive(model.format, model.files, i % kInputs).problem;
      },
      watch_options());
  for (const auto& f : failures) ADD_FAILURE() << models[f.number / kInputs].name << ": " << f.what;
}

TEST(Mutation, modelsThatFailedOnce) {
  const auto models = seeds_in(LAMINA_TESTS_FOLDER "/mutation/cases");
  EXPECT_GT(models.size(), 0U);
  try_models(models);
}

/// What a tree says is what the file says.
TEST(Mutation, treesAreWrittenAsTheyWereRead) {
  for (const auto& seed : all_seeds()) {
    TreeModel once;
    try {
      once = tree_of(seed.format, seed.files);
    } catch (const std::exception&) {
      continue;
    }
    EXPECT_TRUE(tree_of(seed.format, files_of(once)).tree == once.tree) << seed.name;
  }
}

TEST(Mutation, fixedMutants) {
  const Mutants mutants(own_seeds());
  if (mutants.formats() < 6)
    std::printf("some formats have no models: run formats_tests with LAMINA_KEEP_MODELS=%s first\n",
                LAMINA_SEED_MODELS);
  if (const auto alone = number_of("LAMINA_MUTANT")) return try_mutants(mutants, *alone, 1);
  try_mutants(mutants, 1000003 * number_of("LAMINA_SEED").value_or(0),
              number_of("LAMINA_MUTANTS").value_or(kMutants));
}

TEST(Mutation, soak) {
  const char* minutes = std::getenv("LAMINA_SOAK_MINUTES");
  if (!minutes) GTEST_SKIP() << "LAMINA_SOAK_MINUTES is not set";
  const auto seed = number_of("LAMINA_SEED").value_or(std::random_device()());
  const Mutants mutants(all_seeds());
  std::fprintf(stderr, "Mutation.soak: seed %llu, %zu formats\n", static_cast<unsigned long long>(seed),
               mutants.formats());
  const auto start = std::chrono::steady_clock::now();
  const std::chrono::duration<double, std::ratio<60>> most(std::strtod(minutes, nullptr));
  std::uint64_t done = 0;
  constexpr std::uint64_t kAtOnce = 1000;
  for (; std::chrono::steady_clock::now() - start < most; done += kAtOnce)
    try_mutants(mutants, 1000003 * seed + done, kAtOnce);
  std::fprintf(stderr, "Mutation.soak: seed %llu, %llu mutants\n", static_cast<unsigned long long>(seed),
               static_cast<unsigned long long>(done));
}

}  // namespace
}  // namespace lamina::testing
