/// The rows of layers and of the nodes that they are in.
#include <algorithm>
#include <map>

#include "explain/rows.h"
#include "explain/why.h"
#include "ops/decompose.h"

namespace lamina {
namespace {

std::vector<CostPart> parts_of(const Cost& cost) {
  std::vector<CostPart> out;
  for (const auto& p : cost.parts())
    out.push_back({.family = std::string(name_of(p.family)),
                   .calls = p.calls,
                   .work = p.work,
                   .bytes = p.bytes,
                   .us = p.us});
  return out;
}

KernelChoice choice_of(const Choice& choice) {
  KernelChoice out{.estimate_us = choice.cost.us(),
                   .parts = parts_of(choice.cost),
                   .forced = choice.forced,
                   .rejected = {},
                   .refusing = {}};
  for (const auto& lost : choice.lost)
    out.rejected.push_back(
        {.kernel = to_string(lost), .estimate_us = lost.cost.us(), .parts = parts_of(lost.cost)});
  for (const auto& r : choice.refusals) out.refusing.push_back({.kernel = r.kernel, .reason = r.reason});
  return out;
}

NodeTensor tensor_of(const Graph& g, ValueId v) {
  if (!v.valid()) return {};
  return {.type = to_string(g.type(v)), .name = g.value(v).name, .constant = g.constant(v) != nullptr};
}

NodeExplanation node_row(const Findings& all, const OutcomeNode& n) {
  const auto& g = n.plan->graph;
  const auto& node = g.node(n.node);
  NodeExplanation out;
  out.name = g.label(n.node);
  out.operators = operators_of(node);
  if (n.step) {
    auto row = row_of(*n.plan, *n.step);
    out.kernel = std::move(row.kernel);
    out.layout = std::move(row.layout);
    out.precision = std::move(row.precision);
    out.flops = row.work.flops();
    out.bytes = row.work.bytes;
    out.us = all.profile.of(*n.step);
    out.share = all.share(out.us);
    out.scratch = n.step->scratch;
  } else {
    out.idle = why_nothing_runs(node);
  }
  for (const auto v : node.inputs) out.inputs.push_back(tensor_of(g, v));
  for (const auto v : node.outputs) out.outputs.push_back(tensor_of(g, v));
  if (n.choice) out.choice = choice_of(*n.choice);
  return out;
}

/// Why the node has this kernel.
std::string why_chosen(const KernelChoice& choice) {
  if (!choice.forced.empty()) return fmt::format("the options want it: {}", choice.forced);
  const auto next =
      std::min_element(choice.rejected.begin(), choice.rejected.end(),
                       [](const auto& a, const auto& b) { return a.estimate_us < b.estimate_us; });
  if (next == choice.rejected.end()) return "no other kernel takes it";
  return fmt::format("estimated at {:.3g} us, the next is {} with {:.3g} us", choice.estimate_us,
                     next->kernel, next->estimate_us);
}

class LayerRows {
 public:
  LayerRows(const Compiled& compiled, const Findings& all) : all_(all), exempt_(compiled.options().exempt) {}

  LayerExplanation row(const LayerOutcome& f) {
    LayerExplanation out;
    out.name = f.name;
    out.type = f.type;
    out.fate = fate_of(f.kind);
    out.text = in_short(all_, f);
    out.rule = f.rule;
    out.reason = f.reason.empty() ? out.text : f.reason;
    out.exempt = is_exempt(exempt_, f);
    out.companions = companions(all_, f);
    for (const auto& n : f.nodes) out.nodes.push_back({.node = node(n), .chief = n.representative});
    for (const auto& e : f.history) out.history.push_back(event_of(e));
    if (out.fate == LayerFate::fused) out.into = all_.name(f.nodes[0].by);
    if (out.fate == LayerFate::runs) describe_steps(f, out);
    return out;
  }

 private:
  static LayerFate fate_of(LayerOutcome::Kind kind) {
    static_assert(static_cast<int>(LayerFate::untaken) == static_cast<int>(LayerOutcome::Kind::untaken));
    return static_cast<LayerFate>(kind);  // the same list
  }

  void describe_steps(const LayerOutcome& f, LayerExplanation& out) const {
    const auto& first = *out.nodes[0].node;
    out.kernel = first.kernel;
    out.layout = first.layout;
    out.precision = first.precision;
    out.reason = first.choice ? why_chosen(*first.choice) : "";
    out.steps = static_cast<std::size_t>(std::count_if(
        f.nodes.begin(), f.nodes.end(), [](const auto& n) { return n.representative && n.step; }));
    out.estimate_us = all_.estimate(f);
    out.us = all_.time(f);
    out.share = all_.share(out.us);
  }

  /// Made once for all layers that it computes.
  std::shared_ptr<const NodeExplanation> node(const OutcomeNode& n) {
    auto& known = nodes_[{n.plan, n.node.index}];
    if (!known) known = std::make_shared<const NodeExplanation>(node_row(all_, n));
    return known;
  }

  const Findings& all_;
  const Exemptions exempt_;
  std::map<std::pair<const Plan*, std::uint32_t>, std::shared_ptr<const NodeExplanation>> nodes_;
};

}  // namespace

std::vector<LayerExplanation> layer_rows(const Compiled& compiled, const Findings& all) {
  LayerRows rows(compiled, all);
  std::vector<LayerExplanation> out;
  for (const auto& f : all.outcomes) out.push_back(rows.row(f));
  return out;
}

}  // namespace lamina
