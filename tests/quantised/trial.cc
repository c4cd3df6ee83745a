#include "tests/quantised/trial.h"

#include <algorithm>
#include <cmath>

#include "ops/activation.h"
#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/quantization.h"
#include "ops/walk.h"
#include "rules/weights.h"
#include "rules/widen_half.h"
#include "tests/quantised/bounds.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

constexpr double kOfLargest = 1e-5;  // floats may be off
constexpr double kFromTie = 1e-4;    // of a level

/// What the graph gives, what it would give if its last operator, which rounds, read a little less or more,
/// and what it may give where roundings of f32 on the way change more than that.
struct Wanted {
  Tensor result, low, high, least, most;
  std::vector<bool> undecided;
};

/// The value before the last rounding.
ValueId before_rounding(const Graph& g) {
  const auto result = g.results()[0].value;
  const Node& last = g.node(g.producer(result));
  return last.op.is<Quantize>() || last.op.is<Convert>() ? last.inputs[0] : result;
}

/// A scale for each element.
std::vector<double> step_of_each(const Graph& g, const Node& quantize, const Dims& dims) {
  const Tensor& scale = *g.constant(quantize.inputs[1]);
  Dims from(scale.size() == 1 ? 0 : dims.size(), 1);
  if (!from.empty()) from[static_cast<std::size_t>(quantize.op.as<Quantize>()->axis)] = scale.shape()[0];
  return broadcast_values(to_doubles(scale), from, dims);
}

Wanted wanted(const Graph& g, const Values& inputs) {
  const auto values = all_values(g, inputs);
  const auto result = g.results()[0].value, end = before_rounding(g);
  const Tensor& x = values[end.index];
  const Node& last = g.node(g.producer(result));
  std::vector<double> off(x.size(), kOfLargest * largest(x));
  if (last.op.is<Quantize>()) {
    off = step_of_each(g, last, x.shape());
    for (auto& o : off) o *= kFromTie;
  }
  const auto rounded = [&](std::vector<double> near, double sign) {
    for (std::size_t i = 0; i < near.size(); ++i) near[i] += sign * off[i];
    auto t = from_doubles(x.element_type(), x.shape(), near);
    if (end == result) return t;
    Values in{std::move(t)};
    for (std::size_t i = 1; i < last.inputs.size(); ++i) in.push_back(values[last.inputs[i].index]);
    return interpret_node(last, in)[0];
  };
  const auto here = to_doubles(x);
  const auto bounds = bounds_of(g, values, end);
  return {values[result.index],    rounded(here, -1),       rounded(here, 1),
          rounded(bounds.low, -1), rounded(bounds.high, 1), bounds.undecided};
}

void judge(const Tensor& got, const Wanted& wanted, bool exact, Trial& trial) {
  const auto& want = wanted.result;
  if (got.element_type() != want.element_type() || got.shape() != want.shape()) {
    trial.problem = fmt::format("is {}{}, wanted {}{}", name_of(got.element_type()), to_string(got.shape()),
                                name_of(want.element_type()), to_string(want.shape()));
    return;
  }
  const auto g = to_doubles(got), w = to_doubles(want), low = to_doubles(wanted.low),
             high = to_doubles(wanted.high), least = to_doubles(wanted.least), most = to_doubles(wanted.most);
  const bool integers = is_integer(want.element_type());
  trial.elements += g.size();
  for (std::size_t i = 0; i < g.size(); ++i) {
    if (g[i] == w[i] || (std::isnan(g[i]) && std::isnan(w[i]))) continue;
    const bool in_range = g[i] >= low[i] && g[i] <= high[i] && !(exact && integers);
    if (in_range)
      trial.a_step_off += integers;
    else if (wanted.undecided[i] || (!exact && g[i] >= least[i] && g[i] <= most[i]))
      ++trial.by_roundings;
    else if (trial.problem.empty())
      trial.problem = fmt::format("element {} is {}, wanted {}, from {} to {}", i, g[i], w[i],
                                  std::min(low[i], least[i]), std::max(high[i], most[i]));
  }
}

/// Rounds a bias that is given at run time, as a Convert of the pattern asks for.
bool rounds_bias(const Graph& g, const Node& n) {
  if (n.inputs.size() != 1 || (!n.op.is<Convert>() && n.op.name() != "Elementwise")) return false;
  const auto maker = g.producer(n.inputs[0]);
  return maker.valid() ? rounds_bias(g, g.node(maker)) : g.value(n.inputs[0]).name.starts_with("bias");
}

/// Weights that are made at run time are quantised by nodes of their own; views are no work; what is given in
/// halves is widened at the border.
bool counts(const Graph& g, const Node& n, const Node& product) {
  if (n.op.has(Trait::keeps_values) || n.op.name() == "Reshape") return false;
  if (n.op.is<Convert>() && !g.producer(n.inputs[0]).valid()) return false;
  if (rounds_bias(g, n)) return false;
  auto v = product.inputs[1];
  for (int steps = 0; steps < 3 && v.valid(); ++steps) {
    const auto maker = g.producer(v);
    if (!maker.valid()) break;
    if (&g.node(maker) == &n) return false;
    v = g.node(maker).inputs[0];
  }
  return true;
}

std::string gap_of(const Graph& g, const Ledger& ledger) {
  std::vector<std::string> names;
  const auto product = product_of(g);
  if (!product.valid()) return "no product is left";
  const Node& host = g.node(product);
  const bool integer = is_integer(g.type(host.inputs[0]).element);
  for (const auto id : g.order())
    if (counts(g, g.node(id), host)) names.push_back(g.node(id).op.name());
  if (names.size() == 1 && integer) return {};
  std::string text = integer ? "" : "in floats: ";
  text += fmt::format("{}", fmt::join(names, "+"));
  for (const auto& entry : ledger.refusals())
    if (entry.rule.starts_with("int8") || entry.rule.starts_with("fuse"))
      text += "\n        " + entry.rule + ": " + entry.text;
  return text;
}

Values run(const Graph& g, const Values& inputs) { return run_graph(g, inputs, 1).outputs; }

/// The step with which what is stored uses most of its range.
double fitting_step(Pattern p) {
  p.stored = Stored::as_it_is;
  Graph g = parse(text_of(p));
  widen_half(g);
  const double most = largest(interpret(g, pattern_inputs(g, p))[0]);
  const double step =
      std::clamp(most, 1e-3, 1e3) / (p.destination == ElementType::i8 || p.destination_zero ? 120 : 200);
  return p.powers_of_two ? std::exp2(std::round(std::log2(step))) : step;
}

/// What each kernel that offers all of a node makes of it, but for the reference; calls f with its label,
/// too.
void each_offer(const Graph& g, NodeId id, const Values& values,
                const std::function<void(const std::string&, const Tensor&)>& f) {
  Values in;
  for (const auto v : g.node(id).inputs) in.push_back(v.valid() ? values[v.index] : Tensor());
  for (const auto& offer : ask_kernels(NodeView(g, id)).offers)
    if (!offer.last_resort && !offer.is_view && offer.make && offer.stages >= epilogue_size(g.node(id)))
      f(offer.label, run_offer(g, id, offer, in).at(0));
}

}  // namespace

std::string wrong_sums(const Pattern& p) {
  const auto text = sums_of(p);
  const Graph g = parse(text);
  const auto inputs = pattern_inputs(g, p);
  const auto values = all_values(g, inputs);
  const auto id = g.order().back();
  const auto& wanted = values[g.node(id).outputs[0].index];
  std::string wrong;
  const auto compare = [&](const std::string& what, const Tensor& got) {
    if (!got.same_as(wanted)) wrong += what + " is wrong\n";
  };
  compare("the plan", run(g, inputs)[0]);
  each_offer(g, id, values, compare);
  return wrong.empty() ? wrong : wrong + text;
}

Trial tried(Pattern p, bool exact, const std::function<void(Graph&)>& fault) {
  Trial trial;
  std::string text, optimised;
  try {
    if (p.stored == Stored::quantised) p.step = fitting_step(p);
    text = text_of(p);
    Graph g = parse(text);
    widen_half(g);
    const auto inputs = pattern_inputs(g, p);
    Graph better = g;
    if (p.seed % 2 != 0) unalign_constants(better);
    Ledger ledger;
    optimize(better, {}, ledger);
    if (fault) fault(better);
    optimised = print_graph(better).text;
    trial.gap = gap_of(better, ledger);
    const auto want = wanted(g, inputs);
    judge(run(better, inputs)[0], want, exact, trial);
    const auto last = better.producer(better.results()[0].value);
    if (has_weights(better.node(last)))
      each_offer(better, last, all_values(better, inputs), [&](const std::string& label, const Tensor& got) {
        const bool right = trial.problem.empty();
        judge(got, want, exact, trial);
        if (right && !trial.problem.empty()) trial.problem = label + ": " + trial.problem;
      });
  } catch (const std::exception& e) {
    trial.problem = std::string("error: ") + e.what();
  }
  if (!trial.problem.empty())
    trial.problem = fmt::format("{}\n{}\n{}\n{}", in_words(p), trial.problem, text, optimised);
  return trial;
}

}  // namespace lamina::testing
