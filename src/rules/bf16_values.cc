/// Values between products become bf16: who makes them stores them so, who moves them moves half as many
/// bytes, and who computes with them widens them on the way.
#include <algorithm>

#include "ops/elementwise.h"
#include "ops/pooling.h"
#include "rewrite/driver.h"
#include "rules/bf16.h"
#include "rules/chosen_elements.h"
#include "rules/rules.h"
#include "rules/support.h"

namespace lamina {
namespace {

bool makes_f32(const Graph& g, const Node& n) {
  return bf16::may_store(g, n) && !(g.value(n.outputs[0]).uses.size() == 1 && !is_host(n) &&
                                    bf16::narrows(g, g.node(g.value(n.outputs[0]).uses[0].node)));
}

Verdict lies_between(const Match& m) {
  return bf16::lies_between(bf16::Context(m), m.root_node().outputs[0]);
}

/// The epilogue with a conversion to bf16 behind it.
Graph narrowed(const Graph& g, const Node& n) {
  Graph body;
  if (const auto* old = epilogue(n)) {
    body = *old;
  } else {
    body.add_result("y", body.add_input("result", g.type(n.outputs[0])));
  }
  body.set_result(0, body.add(Convert{ElementType::bf16}, {body.results()[0].value}));
  return body;
}

void store_bf16(Rewrite& r) {
  const Node n = r.match().root_node();
  ValueId narrow;
  if (epilogue(n) || is_host(n)) {
    narrow = r.add(n.op, n.inputs, {narrowed(r.graph(), n)});
  } else {
    narrow = r.add(Convert{ElementType::bf16}, {r.add(n.op, n.inputs)});
  }
  r.replace(r.add(Convert{ElementType::f32}, {narrow}));
}

// What passes elements on.

bool passes_widened(const Graph& g, const Node& n) {
  if (!bf16::passes_on(g, n)) return false;
  for (std::size_t i = 0; i < data_inputs(n); ++i)
    if (!bf16::narrow_value(g, n.inputs[i]).valid()) return false;
  return true;
}

Verdict all_between(const Match& m) {
  for (const auto v : m.root_node().outputs)
    if (m.graph().readers(v) > 0) return bf16::lies_between(bf16::Context(m), v);
  return Verdict::no("no node reads it");
}

void pass_bf16(Rewrite& r) {
  const Node n = r.match().root_node();
  auto inputs = n.inputs;
  for (std::size_t i = 0; i < data_inputs(n); ++i) inputs[i] = bf16::narrow_value(r.graph(), inputs[i]);
  const auto id = r.add_node(n.op, std::move(inputs), static_cast<int>(n.outputs.size()));
  const auto outputs = r.graph().node(id).outputs;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (r.graph().readers(n.outputs[i]) > 0) r.replace(i, r.add(Convert{ElementType::f32}, {outputs[i]}));
}

// What computes with widened values.

/// The first input of a body that is widened just before; none: SIZE_MAX.
std::size_t widened_input(const Graph& g, const Node& n) {
  const bool group = n.op.is<Elementwise>();
  for (std::size_t i = group ? 0 : base_inputs(n); epilogue(n) && i < n.inputs.size(); ++i)
    if (bf16::narrow_value(g, n.inputs[i]).valid()) return i;
  return SIZE_MAX;
}

/// The body with that parameter widened by itself.
Graph widening(const Graph& g, const Node& n, std::size_t input) {
  Graph body = *epilogue(n);
  const auto p = body.inputs()[n.op.is<Elementwise>() ? input : input - base_inputs(n) + 1];
  const auto uses = body.value(p).uses;
  const auto shape = body.type(p).shape;
  body.set_type(p, {ElementType::bf16, g.type(n.inputs[input]).shape});
  const auto wide = body.add(Convert{ElementType::f32}, {p});
  for (const auto& use : uses) body.set_input(use.node, use.input, wide);
  for (std::size_t r = 0; r < body.results().size(); ++r)
    if (body.results()[r].value == p) body.set_result(r, wide);
  return body;
}

void read_bf16(Rewrite& r) {
  const Node n = r.match().root_node();
  const auto input = widened_input(r.graph(), n);
  auto inputs = n.inputs;
  inputs[input] = bf16::narrow_value(r.graph(), inputs[input]);
  auto bodies = n.bodies;
  bodies[0] = widening(r.graph(), n, input);
  r.replace(r.add(n.op, std::move(inputs), std::move(bodies)));
}

}  // namespace

void add_bf16_values(Rules& rules) {
  rules.push_back(rule("bf16-store", "Values between products are stored as bf16", RuleSet::precision,
                       node("product or element-wise operator", makes_f32, {}))
                      .when(lies_between)
                      .make(store_bf16)
                      .only_with(&RewriteOptions::bf16));
  rules.push_back(rule("bf16-pass-on",
                       "Poolings, Concat, Reshape, Transpose and similar operators pass bf16 on",
                       RuleSet::precision, node("operator that passes elements on", passes_widened, {}))
                      .when(all_between)
                      .make(pass_bf16)
                      .only_with(&RewriteOptions::bf16));
  rules.push_back(
      rule("bf16-read", "Epilogues and element-wise operators read bf16 and widen it themselves",
           RuleSet::precision,
           node("node with an epilogue",
                [](const Graph& g, const Node& n) { return widened_input(g, n) != SIZE_MAX; }, {}))
          .make([](Rewrite& r) { read_bf16(r); })
          .only_with(&RewriteOptions::bf16));
  const auto wide = any();
  const auto narrow = is<Convert>(wide).that(bf16::narrows_widened);
  rules.push_back(
      rule("bf16-narrow-widened", "Removes a conversion of bf16 to f32 and back", RuleSet::precision, narrow)
          .make([wide](Rewrite& r) {
            const auto& g = r.graph();
            r.absorb(g.producer(r.match().value(wide)));
            r.replace(bf16::narrow_value(g, r.match().value(wide)));
          })
          .only_with(&RewriteOptions::bf16));
}

}  // namespace lamina
