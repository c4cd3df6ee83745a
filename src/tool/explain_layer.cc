#include "tool/explain_layer.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "draw/text.h"
#include "explain/summary.h"
#include "explain/why.h"
#include "ops/decompose.h"

namespace lamina::tool {
namespace {

/// "brgemm_conv 17.3, transpose 3.1", dearest first; `counts`: "brgemm_conv 17.3 (5.78e+07 work, 1e+06
/// bytes)".
std::string made_of(const Cost& cost, bool counts) {
  auto parts = cost.parts();
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.us > b.us; });
  std::vector<std::string> text;
  for (const auto& p : parts) {
    text.push_back(fmt::format("{} {:.3g}", name_of(p.family), p.us));
    if (!counts) continue;
    std::vector<std::string> what;
    if (p.work != 0) what.push_back(fmt::format("{:.3g} work", p.work));
    if (p.bytes != 0) what.push_back(fmt::format("{:.3g} bytes", p.bytes));
    if (what.empty()) what.push_back(fmt::format("{:.3g} calls", p.calls));
    text.back() += fmt::format(" ({})", fmt::join(what, ", "));
  }
  return fmt::format("{}", fmt::join(text, ", "));
}

void print_choice(const Common& c, const Choice& choice) {
  const double us = choice.cost.us();
  c.say("    estimated   {:.3g} us with reorders", us);
  if (us > 0) c.say("    made of     {}", made_of(choice.cost, true));
  if (!choice.forced.empty()) c.say("    wanted      {}", choice.forced);
  for (const auto& lost : choice.lost)
    c.say("    not chosen  {}: {:.3g} us{}{}{}", to_string(lost), lost.cost.us(),
          us > 0 ? fmt::format(" ({:.2f} times)", lost.cost.us() / us) : "",
          lost.cost.parts().empty() ? "" : ": ", made_of(lost.cost, false));
  for (const auto& r : choice.refusals) c.say("    refused     {}: {}", r.kernel, r.reason);
}

void print_node(const Common& c, const Findings& all, const OutcomeNode& n) {
  const auto& node = n.plan->graph.node(n.node);
  c.say("  node \"{}\": {}", printable(n.plan->graph.label(n.node)), clipped(operators_of(node), 300));
  if (!n.step) {
    c.say("    kernel      none, {}", why_nothing_runs(node));
  } else {
    const auto row = row_of(*n.plan, *n.step);
    c.say("    kernel      {}, {}, {}", row.kernel, row.layout, row.precision);
    if (const double time = all.profile.of(*n.step); all.timed())
      c.say("    time        {:.1f} us ({:.1f} % of {:.1f}), {:.3g} GFLOP/s, {:.3g} GB/s", time,
            100 * all.share(time), all.profile.whole(), time > 0 ? row.work.flops() / time / 1e3 : 0,
            time > 0 ? row.work.bytes / time / 1e3 : 0);
    if (n.step->scratch) c.say("    scratch     {}", human_bytes(static_cast<double>(n.step->scratch)));
  }
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    if (const auto v = node.inputs[i]; v.valid())
      c.say("    input {:<5} {} {}{}", i, to_string(n.plan->graph.type(v)),
            printable(n.plan->graph.value(v).name), n.plan->graph.constant(v) ? " (constant)" : "");
  for (std::size_t i = 0; i < node.outputs.size(); ++i)
    c.say("    output {:<4} {} {}", i, to_string(n.plan->graph.type(node.outputs[i])),
          printable(n.plan->graph.value(node.outputs[i]).name));
  if (n.choice) print_choice(c, *n.choice);
}

}  // namespace

void print_detail(const Common& c, const Session& s, const Findings& all, const LayerOutcome& f) {
  c.say("{}  {}", printable(f.name), f.type);
  c.say("  {}", in_short(all, f));
  if (const auto others = companions(all, f); !others.empty())
    c.say("  one node with {}", printable(fmt::format("{}", fmt::join(others, ", "))));
  if (is_exempt(s.impl(), f)) c.say("  exempt: no rule changes it (--exempt)");
  for (const auto& n : f.nodes) print_node(c, all, n);
  if (!f.history.empty()) c.say("  rules, in order:");
  for (const auto& e : f.history) c.say("    {}", printable(to_string(e)));
}

}  // namespace lamina::tool
