#include "plan/choose.h"

#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "base/progress.h"
#include "base/random.h"
#include "kernels/epilogue.h"
#include "kernels/generated_code.h"
#include "plan/decompose.h"
#include "plan/kernel_overrides.h"

namespace lamina {
namespace {

using AllAnswers = std::map<NodeId, Answers>;
/// Why nodes were decomposed, by their parts.
using WhyDecomposed = std::map<NodeId, Answers::Refusal>;

/// Costs times 2^-10 to 2^10.
void stir(std::uint64_t seed, NodeId id, std::vector<Offer>& offers) {
  SplitMix random(seed + 1000003ull * id.index);
  for (auto& offer : offers) offer.cost *= std::exp2(10.0 * random.uniform());
}

/// The answers without offers whose generated code is never released, if one of lamina's own kernels is
/// offered.
Answers ask_sparing(const NodeView& view) {
  {
    const SparingMemory here;
    auto answers = ask_kernels(view);
    const auto own = [](const Offer& o) { return o.kernel.starts_with("native.") && !o.last_resort; };
    if (!here.spared() || std::any_of(answers.offers.begin(), answers.offers.end(), own)) return answers;
  }
  return ask_kernels(view);
}

/// Asks the kernels about nodes that have no answers yet, in parallel: oneDNN takes its time to find an
/// implementation.
void ask(const Graph& graph, const std::vector<NodeId>& nodes, const PlanOptions& options,
         AllAnswers& answers) {
  std::vector<NodeId> open;
  for (const auto id : nodes)
    if (!answers.contains(id)) open.push_back(id);
  std::vector<Answers> found(open.size());
  const KernelOverrides overrides(options.force, graph);
  StageProgress progress(options.progress, "choosing kernels", open.size());
  parallel_for(static_cast<std::int64_t>(open.size()), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      const NodeView view(graph, open[i], *options.machine);
      found[i] = ask_sparing(view);
      add_decomposed_offers(view, found[i].offers);
      overrides.apply(view, found[i]);
      if (options.any_kernels != 0) stir(options.any_kernels, open[i], found[i].offers);
      progress.one_done();
    }
  });
  progress.end();
  for (std::size_t i = 0; i < open.size(); ++i) answers.emplace(open[i], std::move(found[i]));
  overrides.check(graph, answers);
}

Answers::Refusal why_decomposed(const Assignment& assignment, NodeId id, const Node& node,
                                const Answers& answers) {
  const auto cost = assignment.cost(id, answers.offers[assignment.chosen(id)]).us();
  const Offer* best = nullptr;
  for (const auto& o : answers.offers)
    if (o.make && !o.last_resort && (!best || assignment.cost(id, o) < assignment.cost(id, *best))) best = &o;
  const auto what = fmt::format("one node with its neighbours ({})", node.op.name());
  if (best)
    return {what,
            fmt::format("{} is estimated at {:.3g} us, its parts alone at {:.3g} us", best->label,
                        assignment.cost(id, *best).us(), cost),
            true};
  return {what, answers.refusals.empty() ? "no kernel takes all of it" : answers.refusals[0].reason, true};
}

/// The nodes with those decomposed whose chosen offers say so.
std::vector<NodeId> decomposed(Graph& graph, const std::vector<NodeId>& nodes, const Assignment& assignment,
                               AllAnswers& answers, WhyDecomposed& why) {
  std::vector<NodeId> out;
  for (const auto id : nodes) {
    const auto& offer = answers.at(id).offers[assignment.chosen(id)];
    if (!decomposes(graph.node(id), offer)) {
      out.push_back(id);
      continue;
    }
    const bool whole_epilogue = offer.stages >= epilogue_size(graph.node(id));
    const auto reason = why_decomposed(assignment, id, graph.node(id), answers.at(id));
    for (const auto part : decompose_for(graph, id, offer)) {
      out.push_back(part);
      if (whole_epilogue) why[part] = reason;
    }
    answers.erase(id);
  }
  return out;
}

Choice explain(const Graph& graph, NodeId id, const Answers& answers, const Assignment& assignment) {
  const auto best = assignment.chosen(id);
  const auto layout = [](const Offer& o) { return o.outputs.empty() ? Layout::plain : o.outputs[0]; };
  Choice choice;
  choice.node = id;
  choice.label = answers.offers[best].label;
  choice.layout = layout(answers.offers[best]);
  choice.cost = assignment.cost(id, answers.offers[best]);
  for (std::size_t i = 0; i < answers.offers.size(); ++i)
    if (const auto& offer = answers.offers[i]; i != best)
      choice.lost.push_back(
          {offer.label, layout(offer), assignment.cost(id, offer), decomposes(graph.node(id), offer)});
  choice.refusals = answers.refusals;
  choice.forced = answers.forced;
  if (answers.offers[best].unwanted) choice.forced += ", in a layout that its neighbours do not take";
  return choice;
}

}  // namespace

std::vector<Picked> choose(Graph& graph, std::vector<NodeId> nodes, std::vector<Choice>& choices,
                           const PlanOptions& options) {
  AllAnswers answers;
  WhyDecomposed why;
  while (true) {
    ask(graph, nodes, options, answers);
    const Assignment assignment(graph, nodes, answers, *options.machine);
    auto after = decomposed(graph, nodes, assignment, answers, why);
    if (after != nodes) {
      nodes = std::move(after);
      continue;
    }
    for (const auto id : nodes) {
      choices.push_back(explain(graph, id, answers.at(id), assignment));
      if (const auto it = why.find(id); it != why.end()) choices.back().refusals.push_back(it->second);
    }
    std::vector<Picked> picked;
    for (const auto id : nodes)
      picked.push_back({id, std::move(answers.at(id).offers[assignment.chosen(id)])});
    return picked;
  }
}

}  // namespace lamina
