#include "tool/explain_layer.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace lamina::tool {
namespace {

/// "brgemm_conv 17.3, transpose 3.1", dearest first; `counts`: "brgemm_conv 17.3 (5.78e+07 work, 1e+06
/// bytes)".
std::string made_of(std::vector<CostPart> parts, bool counts) {
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.us > b.us; });
  std::vector<std::string> text;
  for (const auto& p : parts) {
    text.push_back(fmt::format("{} {:.3g}", p.family, p.us));
    if (!counts) continue;
    std::vector<std::string> what;
    if (p.work != 0) what.push_back(fmt::format("{:.3g} work", p.work));
    if (p.bytes != 0) what.push_back(fmt::format("{:.3g} bytes", p.bytes));
    if (what.empty()) what.push_back(fmt::format("{:.3g} calls", p.calls));
    text.back() += fmt::format(" ({})", fmt::join(what, ", "));
  }
  return fmt::format("{}", fmt::join(text, ", "));
}

void print_choice(const Common& c, const KernelChoice& choice) {
  const double us = choice.estimate_us;
  c.say("    estimated   {:.3g} us with reorders", us);
  if (us > 0) c.say("    made of     {}", made_of(choice.parts, true));
  if (!choice.forced.empty()) c.say("    wanted      {}", choice.forced);
  for (const auto& lost : choice.rejected)
    c.say("    not chosen  {}: {:.3g} us{}{}{}", lost.kernel, lost.estimate_us,
          us > 0 ? fmt::format(" ({:.2f} times)", lost.estimate_us / us) : "", lost.parts.empty() ? "" : ": ",
          made_of(lost.parts, false));
  for (const auto& r : choice.refusing) c.say("    refused     {}: {}", r.kernel, r.reason);
}

void print_node(const Common& c, const Explanation& all, const NodeExplanation& n) {
  c.say("  node \"{}\": {}", printable(n.name), clipped(n.operators, 300));
  if (!n.idle.empty()) {
    c.say("    kernel      none, {}", n.idle);
  } else {
    c.say("    kernel      {}, {}, {}", n.kernel, n.layout, n.precision);
    if (all.timed())
      c.say("    time        {:.1f} us ({:.1f} % of {:.1f}), {:.3g} GFLOP/s, {:.3g} GB/s", n.us,
            100 * n.share, all.totals.us, n.us > 0 ? n.flops / n.us / 1e3 : 0,
            n.us > 0 ? n.bytes / n.us / 1e3 : 0);
    if (n.scratch) c.say("    scratch     {}", human_bytes(static_cast<double>(n.scratch)));
  }
  for (std::size_t i = 0; i < n.inputs.size(); ++i)
    if (const auto& v = n.inputs[i]; !v.type.empty())
      c.say("    input {:<5} {} {}{}", i, v.type, printable(v.name), v.constant ? " (constant)" : "");
  for (std::size_t i = 0; i < n.outputs.size(); ++i)
    c.say("    output {:<4} {} {}", i, n.outputs[i].type, printable(n.outputs[i].name));
  if (n.choice) print_choice(c, *n.choice);
}

}  // namespace

void print_detail(const Common& c, const Explanation& all, const LayerExplanation& f) {
  c.say("{}  {}", printable(f.name), f.type);
  c.say("  {}", f.text);
  if (!f.companions.empty())
    c.say("  one node with {}", printable(fmt::format("{}", fmt::join(f.companions, ", "))));
  if (f.exempt) c.say("  exempt: no rule changes it (--exempt)");
  for (const auto& n : f.nodes) print_node(c, all, *n.node);
  if (!f.history.empty()) c.say("  rules, in order:");
  for (const auto& e : f.history) c.say("    {}", printable(to_string(e)));
}

}  // namespace lamina::tool
