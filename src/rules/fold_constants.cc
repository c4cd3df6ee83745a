/// Nodes that read constants only are evaluated once.
#include <algorithm>

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

Found<std::vector<Tensor>> evaluated(const Match& m) {
  const Node& n = m.root_node();
  if (stays_stored(m, n)) return Verdict::no("{} stays in few bits", m.label(n.inputs[0]));
  if (auto v = small_enough(m); !v) return v;
  std::vector<Tensor> inputs;
  for (auto v : n.inputs) inputs.push_back(v.valid() ? *m.graph().constant(v) : Tensor());
  try {
    return evaluate_node(n, inputs, {});
  } catch (const Error& e) {
    return Verdict::no("{}", e.what());
  }
}

}  // namespace

void add_fold_constants(Rules& rules) {
  rules.push_back(rule("fold-constants", "Evaluates what reads constants only", RuleSet::normalize,
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
