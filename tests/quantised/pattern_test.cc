/// The pattern of quantised inference in all its types, one node each, against the interpreter.
///
/// Types, subgraphs, scales and zero points are tried in all combinations on a small product; operators of
/// the epilogue and kernels in pairs; and all of it at random. A part of that runs as a test;
/// LAMINA_SOAK_MINUTES makes it whole, and goes on at random. LAMINA_SEED moves the seeds, LAMINA_PATTERN
/// tries one pattern of Pattern.at_random alone, LAMINA_VERBOSE tells of gaps.
#include <gtest/gtest.h>

#include <chrono>
#include <map>

#include "ops/elementwise.h"
#include "ops/quantization.h"
#include "tests/quantised/trial.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

bool soaks() { return std::getenv("LAMINA_SOAK_MINUTES") != nullptr; }

std::uint64_t first_seed() {
  const char* given = std::getenv("LAMINA_SEED");
  return given ? std::strtoull(given, nullptr, 10) * 1000003 : 1;
}

/// What many trials came to.
class Tally {
 public:
  Tally() = default;
  Tally(const Tally&) = delete;
  Tally& operator=(const Tally&) = delete;
  ~Tally() {
    EXPECT_LT(50 * by_roundings_, elements_ + 1000) << "elements that roundings decide";
    fmt::print(stderr,
               "{} graphs, {} elements, {} of them a step off, {} further by roundings on the way; {} with "
               "more than one node\n",
               graphs_, elements_, a_step_off_, by_roundings_, gaps_);
    for (const auto& [gap, of] : kinds_)
      ADD_FAILURE() << fmt::format("{} graphs are not one node but {}\nas {}", of.count, gap, of.example);
  }
  void add(const Pattern& p, bool exact = false) {
    const auto trial = tried(p, exact);
    ++graphs_;
    elements_ += trial.elements;
    by_roundings_ += trial.by_roundings;
    a_step_off_ += trial.a_step_off;
    if (!trial.problem.empty() && ++failures_ <= 5) ADD_FAILURE() << trial.problem;
    if (!trial.problem.empty() && failures_ > 5) ADD_FAILURE() << "again: " << in_words(p);
    if (trial.gap.empty()) return;
    ++gaps_;
    auto& kind = kinds_[trial.gap];
    if (kind.count++ == 0) kind.example = in_words(p);
  }
  bool stop() const { return failures_ > 20; }

 private:
  struct Kind {
    std::size_t count = 0;
    std::string example;
  };
  std::size_t graphs_ = 0, elements_ = 0, by_roundings_ = 0, a_step_off_ = 0, failures_ = 0, gaps_ = 0;
  std::map<std::string, Kind> kinds_;
};

struct End {
  Stored stored;
  ElementType type;
  bool zero = false, by_channel = false;
};

std::vector<End> ends() {
  std::vector<End> out{{Stored::as_it_is, ElementType::f32},
                       {Stored::converted, ElementType::bf16},
                       {Stored::converted, ElementType::f16}};
  for (const auto type : {ElementType::u8, ElementType::i8})
    for (const bool zero : {false, true})
      for (const bool by_channel : {false, true}) out.push_back({Stored::quantised, type, zero, by_channel});
  return out;
}

constexpr ElementType kBias[] = {ElementType::undefined, ElementType::f32, ElementType::bf16,
                                 ElementType::f16};
constexpr ElementType kCasts[] = {ElementType::f32, ElementType::bf16, ElementType::f16};

void set_end(Pattern& p, const End& end) {
  p.stored = end.stored;
  p.destination = end.type;
  p.destination_zero = end.zero;
  p.destination_by_channel = end.by_channel;
}

/// All types, subgraphs, scales and zero points of a kernel.
std::vector<Pattern> combinations(std::size_t kernel) {
  std::vector<Pattern> out;
  Pattern p;
  p.kernel = kernel;
  for (const auto source : {ElementType::u8, ElementType::i8})
    for (const bool zero : {false, true})
      for (int weights = 0; weights < 6; ++weights)
        for (const bool by_channel : {false, true})
          for (const auto bias : kBias)
            for (const auto cast : kCasts)
              for (const auto& end : ends()) {
                p.source = source;
                p.source_zero = zero;
                p.weights = static_cast<Weights>(weights);
                p.weights_by_channel = by_channel;
                p.bias = bias;
                p.cast = cast;
                set_end(p, end);
                p.seed = first_seed() + out.size();
                out.push_back(p);
              }
  return out;
}

Pattern random_pattern(std::uint64_t seed) {
  SplitMix r(seed);
  const auto half = [&] { return r.below(2) == 0; };
  Pattern p;
  p.seed = seed;
  p.kernel = r.below(kernels().size());
  p.source = half() ? ElementType::u8 : ElementType::i8;
  p.source_zero = half();
  p.weights = static_cast<Weights>(r.below(6));
  p.weights_by_channel = half();
  if (!kernels()[p.kernel].constant_weights && r.below(4) != 0) p.weights = Weights::s8_given;
  p.bias = kBias[r.below(4)];
  p.bias_is_added = half();
  p.bias_is_given = r.below(5) == 0;
  p.cast = kCasts[r.below(4) % 3];
  const auto all = ends();
  set_end(p, all[r.below(all.size())]);
  p.extreme = r.below(8) == 0;
  for (auto n = r.below(5); n-- > 0;) p.epilogue.push_back(steps()[r.below(steps().size())]);
  return p;
}

std::size_t kernel_named(std::string_view name) {
  for (std::size_t k = 0; k < kernels().size(); ++k)
    if (kernels()[k].name == name) return k;
  return 0;
}

TEST(Pattern, types_and_subgraphs) {
  Tally tally;
  for (const std::string name : {"1x1", "matrix"}) {
    const auto all = combinations(kernel_named(name));
    const std::size_t every = soaks() ? 1 : 13;  // no factor of the counts
    for (std::size_t i = first_seed() % every; i < all.size() && !tally.stop(); i += every) tally.add(all[i]);
  }
}

TEST(Pattern, sums_are_exact) {
  auto seed = first_seed() + 500000;
  for (std::size_t k = 0; k < kernels().size(); ++k)
    for (const auto source : {ElementType::u8, ElementType::i8})
      for (const bool zero : {false, true})
        for (const auto weights : {Weights::s8, Weights::s8_zero, Weights::u8_zero, Weights::s8_given})
          for (const bool extreme : {false, true}) {
            Pattern p;
            p.kernel = k;
            p.source = source;
            p.source_zero = zero;
            p.weights = weights;
            p.weights_by_channel = ++seed % 2 == 0;
            p.extreme = extreme;
            p.seed = seed;
            EXPECT_EQ(wrong_sums(p), "") << in_words(p);
          }
}

TEST(Pattern, kernels_and_epilogues) {
  Tally tally;
  auto seed = first_seed() + 100000;
  for (std::size_t k = 0; k < kernels().size(); ++k)
    for (const auto& step : steps()) {
      auto p = random_pattern(++seed);
      p.kernel = k;
      if (!kernels()[k].constant_weights) p.weights = Weights::s8_given;
      p.epilogue = {step};
      if (!soaks() && seed % 2 == 0) continue;
      tally.add(p);
      if (tally.stop()) return;
    }
}

TEST(Pattern, pairs_of_stages) {
  Tally tally;
  auto seed = first_seed() + 200000;
  for (const auto& first : steps())
    for (const auto& second : steps()) {
      auto p = random_pattern(++seed);
      p.epilogue = {first, second};
      if (!soaks() && seed % 7 != 0) continue;
      tally.add(p);
      if (tally.stop()) return;
    }
}

TEST(Pattern, ties_are_exact_with_powers_of_two) {
  Tally tally;
  auto seed = first_seed() + 300000;
  const auto all = ends();
  for (std::size_t k = 0; k < kernels().size(); ++k)
    for (const auto& end : all) {
      auto p = random_pattern(++seed);
      p.kernel = k;
      if (!kernels()[k].constant_weights) p.weights = Weights::s8_given;
      p.powers_of_two = true;
      p.epilogue.clear();
      if (seed % 3 == 0) p.epilogue = {{"Relu"}};
      set_end(p, end);
      tally.add(p, p.weights != Weights::quantised && p.weights != Weights::quantised_given);
    }
}

/// Replaces the constant operands of one kind of operator in the product's epilogue.
template <class T>
void spoil_operands(Graph& g, double factor, double shift) {
  for (const auto id : g.order())
    for (auto& body : g.bodies(id))
      for (const auto stage : body.order()) {
        const Node n = body.node(stage);
        if (!n.op.is<T>()) continue;
        for (std::size_t i = 0; i < n.inputs.size(); ++i)
          if (const auto* t = body.constant(n.inputs[i])) {
            auto values = to_doubles(*t);
            for (auto& v : values) v = v * factor + shift;
            body.set_input(stage, i, body.add_constant(from_doubles(t->element_type(), t->shape(), values)));
          }
      }
}

TEST(Pattern, faults_are_found) {
  Pattern p;
  p.kernel = kernel_named("1x1");
  p.source_zero = p.destination_zero = true;
  p.bias = ElementType::f32;
  p.epilogue = {{"Relu"}};
  p.stored = Stored::quantised;
  const auto wrong = [&](const std::function<void(Graph&)>& fault) {
    const auto trial = tried(p, false, fault);
    EXPECT_EQ(trial.gap, "");
    return trial.problem;
  };
  const auto nothing = [](Graph&) {};
  const auto no_zero_point = [](Graph& g) { g.set_input(g.order().back(), 3, ValueId{}); };
  const auto scales = [](Graph& g) { spoil_operands<Multiply>(g, 1.01, 0); };
  const auto levels = [](Graph& g) { spoil_operands<Quantize>(g, 1, 1); };
  EXPECT_EQ(wrong(nothing), "");
  EXPECT_NE(wrong(no_zero_point), "");
  EXPECT_NE(wrong(scales), "");
  EXPECT_NE(wrong(levels), "");
  p.stored = Stored::as_it_is;
  EXPECT_EQ(wrong(nothing), "");
  EXPECT_NE(wrong([](Graph& g) { spoil_operands<Multiply>(g, 1.00003, 0); }), "");
  EXPECT_NE(wrong([](Graph& g) { spoil_operands<Add>(g, 1, 0.0002); }), "");
}

TEST(Pattern, at_random) {
  if (const char* one = std::getenv("LAMINA_PATTERN")) {
    EXPECT_EQ(tried(random_pattern(std::strtoull(one, nullptr, 10))).problem, "");
    return;
  }
  Tally tally;
  auto seed = first_seed() + 400000;
  fmt::print(stderr, "seed {}\n", seed);
  const auto start = std::chrono::steady_clock::now();
  const char* minutes = std::getenv("LAMINA_SOAK_MINUTES");
  const std::chrono::duration<double, std::ratio<60>> most(minutes ? std::strtod(minutes, nullptr) : 0);
  for (int i = 0; (i < 400 || std::chrono::steady_clock::now() - start < most) && !tally.stop(); ++i)
    tally.add(random_pattern(++seed));
}

}  // namespace
}  // namespace lamina::testing
