/// A run of multiplications, divisions, additions and subtractions with constants is one Multiply and one
/// Add. Folded in double, rounded once.
#include <algorithm>

#include "ops/elementwise.h"
#include "rules/linear.h"
#include "rules/rules.h"
#include "rules/stored_weights.h"

namespace lamina {
namespace {

/// Constants along different axes make a larger one together: they stay apart.
bool shares_axes(const Shape& a, const Shape& b) {
  const auto both = broadcast(a, b);
  return both && both->count().size() <= std::max(a.count().size(), b.count().size());
}

/// What the run becomes; nothing where all factors are 1 or all shifts 0.
struct Merged {
  LinearSteps steps;  ///< from the lowest up
  Tensor factor, shift;
};

/// Takes away a zero point: who reads the file looks for it next to the numbers.
bool centres_weights(const Graph& g, const LinearStep& step) {
  const auto maker = g.producer(step.x);
  return step.shifts() && maker.valid() && unpacks(g, g.node(maker));
}

/// The steps that end here.
LinearSteps run_to(const Match& m, const LinearStep& lowest) {
  const Graph& g = m.graph();
  Shape running = Shape::of({});
  return steps_above(m, lowest, [&](const LinearStep& step) {
    if (!is_usable(m, step) || !shares_axes(running, step.constant_shape(g)) || centres_weights(g, step))
      return false;
    running = *broadcast(running, step.constant_shape(g));
    return true;
  });
}

/// Another step behind it will take it along.
bool goes_on(const Match& m, const LinearStep& step) {
  const auto below = step_below(m, step);
  return below && is_usable(m, *below) &&
         shares_axes(step.constant_shape(m.graph()), below->constant_shape(m.graph()));
}

/// A Multiply and an Add, in either order, are few enough.
bool is_short(const LinearSteps& steps) {
  std::ptrdiff_t shifts = 0;
  for (const auto& s : steps) shifts += s.shifts();
  return shifts < 2 && std::ssize(steps) - shifts < 2;
}

Found<Merged> merged(const Match& m) {
  const Graph& g = m.graph();
  const auto lowest = *linear_step(g, m.root());
  if (auto v = is_usable(m, lowest); !v) return v;
  if (goes_on(m, lowest)) return std::nullopt;
  const auto steps = run_to(m, lowest);
  if (is_short(steps)) return std::nullopt;
  const auto does = Linear::of(g, steps);
  if (does.rounds())
    return Verdict::no("a number that is added and subtracted again rounds {}", m.label(steps.back().x));
  if (does.cancels())
    return Verdict::no("a number of {:.3g} is added to {}, which would lose digits in another order",
                       does.largest_added(), m.label(steps.back().x));
  const auto y = g.node(m.root()).outputs[0];
  const auto type = g.type(y).element;
  auto factor = rounded(does.factor, type, "a factor"), shift = rounded(does.shift, type, "a shift");
  if (!factor || !shift) return factor ? shift.verdict() : factor.verdict();
  Merged out{steps, *factor, *shift};
  if (does.shift.all(0) && !sign_of_zero_matters(g, y)) out.shift = {};
  if (does.factor.all(1)) out.factor = {};
  if (!out.factor.valid() && !out.shift.valid())
    if (auto v = output_stays_apart(m, y, steps.back().x); !v) return v;
  return out;
}

/// The name of the first step of a kind; in files with what the Model Optimizer puts behind it.
std::string name_of_first(const Graph& g, const LinearSteps& steps, bool shifts, const char* suffix) {
  for (auto s = steps.rbegin(); s != steps.rend(); ++s)
    if (s->shifts() == shifts && !g.node(s->node).name.empty()) return g.node(s->node).name + suffix;
  return g.node(steps.front().node).name;
}

void merge_run(Rewrite& r, const Merged& run) {
  const Graph& g = r.graph();
  const bool in_file = r.match().for_file;
  const auto times = name_of_first(g, run.steps, false, in_file ? "/Fused_Mul_" : ""),
             plus = name_of_first(g, run.steps, true, in_file ? "/Fused_Add_" : "");
  for (const auto& s : run.steps) r.absorb(s.node);
  auto y = run.steps.back().x;
  if (run.factor.valid()) {
    r.named_after_text(times);
    y = r.add(Multiply{}, {y, r.constant(run.factor)});
  }
  if (run.shift.valid()) {
    r.named_after_text(plus);
    y = r.add(Add{}, {y, r.constant(run.shift)});
  }
  if (y == run.steps.back().x) r.note("changes nothing");
  r.replace(y);
}

}  // namespace

void add_merge_linear(Rules& rules) {
  rules.push_back(rule("merge-linear",
                       "Merges a chain of arithmetic with constants into one Multiply and one Add",
                       RuleSet::portable, linear_steps())
                      .when(merged)
                      .make(merge_run)
                      .when_others_are_done());
}

}  // namespace lamina
