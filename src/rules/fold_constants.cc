/// Nodes that read constants only are evaluated once.
#include <algorithm>
#include <atomic>

#include "base/cancellation.h"
#include "rewrite/fold_budget.h"
#include "rules/quantised_products.h"
#include "rules/rules.h"
#include "rules/support.h"

namespace lamina {
namespace {

constexpr std::size_t kLargest = std::size_t{64} << 20;  // a larger result must not outgrow its inputs
/// In a file a constant is no larger if it is mostly what it is computed from, repeated.
constexpr std::size_t kLargestInFiles = std::size_t{1} << 20;
constexpr double kRepeated = 16;

bool reads_constants_only(const Graph& g, const Node& n) {
  return !n.inputs.empty() && n.bodies.empty() && !n.op.has(Trait::impure | Trait::control_flow) &&
         std::all_of(n.inputs.begin(), n.inputs.end(),
                     [&](ValueId v) { return !v.valid() || g.constant(v); }) &&
         std::any_of(n.inputs.begin(), n.inputs.end(), [](ValueId v) { return v.valid(); });
}

Verdict small_enough(const Match& m) {
  const Node& n = m.root_node();
  std::size_t in = 0;
  for (auto v : n.inputs)
    if (v.valid()) in += m.graph().constant(v)->bytes();
  double out = 0;
  for (auto v : n.outputs) {
    const auto& type = m.graph().type(v);
    if (type.shape.known() && type.element != ElementType::undefined) {
      double bytes = bits_of(type.element) / 8.0;
      for (auto d : type.shape.sizes()) bytes *= static_cast<double>(d);
      out += bytes;
    }
  }
  const bool large = out > static_cast<double>(kLargest) && out > static_cast<double>(in);
  const bool repeated =
      m.for_file && out > static_cast<double>(kLargestInFiles) && out > kRepeated * static_cast<double>(in);
  if (large || repeated)
    return Verdict::no("its result has {} MiB, its inputs only {}", static_cast<std::size_t>(out / (1 << 20)),
                       in >> 20);
  return Verdict::yes();
}

/// Operations of an evaluation, as far as shapes tell: an element that is read or written counts as some.
std::int64_t known_work(const Graph& g, const Node& n) {
  constexpr double kMost = 1e18, kElement = 8;
  const auto work = work_of(g, n);
  double sum = work.multiply_adds + work.others;
  for (const auto* list : {&n.inputs, &n.outputs})
    for (const auto v : *list)
      if (v.valid() && g.type(v).shape.known())
        sum += kElement * static_cast<double>(g.type(v).shape.count().low());
  return static_cast<std::int64_t>(std::min(sum, kMost));
}

std::int64_t bytes_of(const TensorType& type) {
  if (!type.shape.known() || type.element == ElementType::undefined) return 0;
  return type.shape.count().low() * bits_of(type.element) / 8;
}

/// Bytes of the results, as far as they are known, without those of constants that nobody else reads.
std::int64_t growth(const Graph& g, const Node& n) {
  std::int64_t bytes = 0;
  for (const auto v : n.outputs) bytes += bytes_of(g.type(v));
  for (const auto v : n.inputs)
    if (v.valid() && g.readers(v) == 1) bytes -= bytes_of(g.type(v));
  return bytes;
}

Verdict too_much(std::string_view of_what) {
  return Verdict::no("{}: folding it would take more {} than is left for the model", kNotFolded, of_what);
}

/// Evaluates within what is left of the budget. Sizes and the like are always folded.
Found<std::vector<Tensor>> within(FoldBudget& budget, const Graph& g, const Node& n,
                                  const std::vector<Tensor>& inputs) {
  constexpr std::int64_t kSmall = 100'000;
  const auto known = known_work(g, n), left = std::max(budget.work(), kSmall);
  if (known > left) return too_much("work");
  const auto bytes = growth(g, n);
  if (bytes > kSmall && bytes > budget.bytes()) return too_much("memory");
  std::atomic<std::int64_t> units = left;
  std::vector<Tensor> results;
  const StopScope scope({.units = &units});
  try {
    results = evaluate_node(n, inputs, {});
  } catch (const Stopped& stopped) {
    if (stopped.by() != &scope) throw;
    budget.take(left, 0);
    return too_much("work");
  }
  budget.take(std::max(known, left - units.load()), bytes);
  return results;
}

Found<std::vector<Tensor>> evaluated(const Match& m) {
  const Node& n = m.root_node();
  if (stays_stored(m, n)) return Verdict::no("{} stays in few bits", m.label(n.inputs[0]));
  if (auto v = small_enough(m); !v) return v;
  std::vector<Tensor> inputs;
  for (auto v : n.inputs) inputs.push_back(v.valid() ? *m.graph().constant(v) : Tensor());
  try {
    if (m.folding != nullptr) return within(*m.folding, m.graph(), n, inputs);
    return evaluate_node(n, inputs, {});
  } catch (const Error& e) {
    return Verdict::no("{}", e.what());
  }
}

}  // namespace

void add_fold_constants(Rules& rules) {
  rules.push_back(rule("fold-constants", "Evaluates nodes whose inputs are constants", RuleSet::normalize,
                       node("node", reads_constants_only, {}))
                      .when(evaluated)
                      .make([](Rewrite& r, const std::vector<Tensor>& results) {
                        r.note("folded into constants");
                        for (std::size_t i = 0; i < results.size(); ++i)
                          if (results[i].valid()) r.replace(i, r.constant(results[i]));
                      })
                      .in_later_sets_too());
}

}  // namespace lamina
