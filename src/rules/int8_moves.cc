/// Where elements are only moved or chosen, integers are: what makes numbers of them comes behind, what makes
/// integers comes before.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/gathering.h"
#include "ops/movement.h"
#include "ops/quantization.h"
#include "ops/shaping.h"
#include "rewrite/driver.h"
#include "rules/chosen_elements.h"
#include "rules/int8.h"
#include "rules/rules.h"
#include "rules/windows.h"

namespace lamina {
namespace {

using int8::Levels;

/// A constant one: it becomes the integer that stands for 0.
bool has_border(const Node& n) {
  const auto* op = n.op.as<Pad>();
  return op && op->pad_mode == PadMode::constant;
}

/// Zeros come for indices that are none.
bool may_fill(const Graph& g, const Node& n) {
  const auto* op = n.op.as<Gather>();
  if (!op || op->out_of_range != OutOfRange::zeros) return false;
  const auto *indices = g.constant(n.inputs[1]), *axis = g.constant(n.inputs[2]);
  const auto& shape = g.type(n.inputs[0]).shape;
  if (!indices || !axis || axis->size() != 1 || !shape.ranked()) return true;
  auto at = to_ints(*axis)[0];
  if (at < 0) at += static_cast<std::int64_t>(shape.rank());
  if (at < 0 || at >= static_cast<std::int64_t>(shape.rank())) return true;
  const auto& dim = shape[static_cast<std::size_t>(at)];
  const auto all = to_ints(*indices);
  return !dim.known() || std::any_of(all.begin(), all.end(),
                                     [&](std::int64_t i) { return i < -dim.size() || i >= dim.size(); });
}

Found<std::vector<Levels>> sources(const Match& m) {
  const Graph& g = m.graph();
  const Node& n = m.root_node();
  const auto is_read = [&](ValueId v) { return g.readers(v) > 0; };
  if (std::none_of(n.outputs.begin(), n.outputs.end(), is_read)) return std::nullopt;
  std::vector<Levels> out;
  for (std::size_t i = 0; i < data_inputs(n); ++i) {
    auto levels = int8::shifted_levels_of(m, n.inputs[i]);
    if (!levels) return i == 0 ? Found<std::vector<Levels>>(std::nullopt) : levels.verdict();
    if (i > 0 && !int8::same_levels(g, out[0], *levels))
      return Verdict::no("{} has another scale or zero point than {}", m.label(n.inputs[i]),
                         m.label(n.inputs[0]));
    out.push_back(*levels);
  }
  if (out[0].offset != 0 && (has_border(n) || may_fill(g, n)))
    return Verdict::no("it fills with 0, which is no level of {}", m.label(n.inputs[0]));
  if (may_fill(g, n) && out[0].zero_point != 0)
    return Verdict::no("an index out of range gives 0, but the zero point is {}", out[0].zero_point);
  return out;
}

void pass_integers(Rewrite& r, const std::vector<Levels>& from) {
  const Node n = r.match().root_node();
  const auto type = r.graph().type(from[0].integers).element;
  auto inputs = n.inputs;
  for (std::size_t i = 0; i < from.size(); ++i) inputs[i] = from[i].integers;
  if (n.op.is<Pad>()) inputs.resize(3);  // a filler may be there and not be read
  if (has_border(n)) {
    inputs.resize(4);
    inputs[3] = r.constant(from_ints(type, {}, {from[0].zero_point}));
  }
  const auto id = r.add_node(n.op, std::move(inputs), static_cast<int>(n.outputs.size()));
  const auto outputs = r.graph().node(id).outputs;
  for (const auto& levels : from) int8::absorb(r, levels);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (r.graph().readers(n.outputs[i]) > 0) r.replace(i, int8::dequantized(r, outputs[i], from[0]));
}

/// Numbers of integers by a scale for each index along an axis, such as those of weights.
bool has_scales(const Graph& g, const Node& n) {
  const auto* op = n.op.as<Dequantize>();
  return op && op->block_size == 0 && bits_of(g.type(n.inputs[0]).element) == 8 &&
         g.type(n.inputs[0]).shape.ranked() && g.type(n.outputs[0]).element == ElementType::f32 &&
         g.type(n.inputs[1]).shape.ranked() && g.type(n.inputs[1]).shape.rank() == 1 &&
         !single_value(g, n.inputs[1]);
}

/// Where an axis of more than one index lies when other axes around it are joined or cut.
std::optional<std::size_t> reshaped_axis(const Shape& from, std::size_t axis, const Shape& to) {
  if (!from.known() || !to.known()) return std::nullopt;
  std::int64_t before = 1, passed = 1;
  for (std::size_t i = 0; i < axis; ++i) before *= from[i].size();
  for (std::size_t i = 0; i < to.rank(); passed *= to[i++].size())
    if (passed == before && to[i] == from[axis]) return i;
  return std::nullopt;
}

/// Where the axis of the scales lies behind the node.
Found<std::size_t> moved_axis(const Match& m, const Pattern& numbers) {
  const Graph& g = m.graph();
  const Node& n = m.root_node();
  const auto& shape = g.type(n.inputs[0]).shape;
  const auto axis = normalize_axis(m.node(numbers).op.as<Dequantize>()->axis, shape.rank(), "axis");
  if (!n.op.is<Transpose>()) {
    if (const auto at = reshaped_axis(shape, axis, g.type(n.outputs[0]).shape)) return *at;
    return std::nullopt;
  }
  const auto order = transpose_order(g, n);
  if (!order) return std::nullopt;
  return static_cast<std::size_t>(std::find(order->begin(), order->end(), static_cast<std::int64_t>(axis)) -
                                  order->begin());
}

void pass_channels(Rewrite& r, const Pattern& numbers, std::size_t axis) {
  const Node n = r.match().root_node(), d = r.match().node(numbers);
  auto moved = n.inputs, inputs = d.inputs;
  moved[0] = d.inputs[0];
  inputs[0] = r.add(Op(n.op), std::move(moved));
  auto op = *d.op.as<Dequantize>();
  op.axis = static_cast<std::int64_t>(axis);
  r.named_after(numbers);
  r.replace(r.add(op, std::move(inputs)));
}

bool rounds(const Graph& g, const Node& n) { return n.op.is<Quantize>() && int8::has_one_step(g, n); }

/// True if all values that the node joins or moves are computed, and no other node reads them: then they can
/// be rounded where they are computed.
Verdict can_be_rounded(const Match& m, const Pattern& moved) {
  const Graph& g = m.graph();
  const Node& n = m.node(moved);
  if (const auto scale = single_value(g, m.root_node().inputs[1]); !scale || *scale <= 0)
    return Verdict::no("its scale is not positive");
  if (has_border(n) || n.op.has(Trait::reads_part)) return nothing_to_do();
  if (g.type(n.outputs[0]).element != ElementType::f32) return nothing_to_do();
  for (std::size_t i = 0; i < data_inputs(n); ++i) {
    if (g.constant(n.inputs[i])) {  // that is rounded once
      if (n.inputs.size() > 1) continue;
      return nothing_to_do();
    }
    if (!g.producer(n.inputs[i]).valid()) return Verdict::no("{} is an input", m.label(n.inputs[i]));
    if (g.readers(n.inputs[i]) != 1) return Verdict::no("{} is also read by others", m.label(n.inputs[i]));
  }
  return Verdict::yes();
}

void round_before(Rewrite& r, const Pattern& moved) {
  const Node n = r.match().node(moved), q = r.match().root_node();
  auto inputs = n.inputs;
  for (std::size_t i = 0; i < data_inputs(n); ++i) {
    auto parameters = q.inputs;
    parameters[0] = inputs[i];
    inputs[i] = r.add(Op(q.op), std::move(parameters));
  }
  r.named_after(moved);
  r.replace(r.add(Op(n.op), std::move(inputs)));
}

/// What a Quantize rounds, as a function of integers by arithmetic with single numbers.
struct Function {
  Levels from;
  std::vector<NodeId> steps;  ///< from the Quantize up to the Dequantize
};

Found<Function> function_of_integers(const Match& m) {
  constexpr std::size_t kMostSteps = 8;
  const Graph& g = m.graph();
  Function f;
  for (auto id = m.root(); f.steps.size() < kMostSteps;) {
    const Node& n = g.node(id);
    f.steps.push_back(id);
    for (std::size_t i = 1; i < n.inputs.size(); ++i)
      if (n.inputs[i].valid() && !single_value(g, n.inputs[i])) return std::nullopt;
    const bool known = n.op.is<Multiply>() || n.op.is<Add>() || n.op.is<Subtract>() || n.op.is<Clamp>() ||
                       n.op.is<Relu>() || id == m.root();
    if (!known) return std::nullopt;
    auto levels = int8::levels_of(m, n.inputs[0]);
    if (levels) {
      f.from = *levels;
      f.steps.push_back(levels->step);
      return f;
    }
    id = g.producer(n.inputs[0]);
    if (!id.valid() || g.readers(n.inputs[0]) != 1) return std::nullopt;
  }
  return std::nullopt;
}

/// Every integer comes back as itself.
Found<Function> comes_back(const Match& m) {
  const Graph& g = m.graph();
  auto f = function_of_integers(m);
  if (!f) return f;
  const auto type = g.type(f->from.integers).element;
  if (m.root_node().op.as<Quantize>()->destination_type != type)
    return Verdict::no("{} becomes {}", name_of(type),
                       name_of(m.root_node().op.as<Quantize>()->destination_type));
  Tensor all(type, {256});
  for (std::size_t i = 0; i < 256; ++i) all.raw()[i] = static_cast<std::byte>(i);
  Tensor now = all;
  for (auto id = f->steps.rbegin(); id != f->steps.rend(); ++id) {
    std::vector<Tensor> inputs{now};
    for (std::size_t i = 1; i < g.node(*id).inputs.size(); ++i) {
      const auto v = g.node(*id).inputs[i];
      inputs.push_back(v.valid() ? g.constant(v)->to_aligned().reshaped({}) : Tensor());
    }
    now = evaluate_node(g.node(*id), inputs, {}).at(0);
  }
  if (std::memcmp(now.raw(), all.raw(), all.bytes()) != 0)
    return Verdict::no("its scale, zero point or bounds are others than those of {}",
                       m.label(g.node(f->from.step).outputs[0]));
  if (auto v = output_stays_apart(m, m.root_node().outputs[0], f->from.integers); !v) return v;
  return f;
}

}  // namespace

void add_int8_moves(Rules& rules) {
  rules.push_back(rule("int8-pass-on",
                       "Poolings, Concat, Reshape, Transpose and similar operators pass integers on",
                       RuleSet::integers, node("operator that passes elements on", keeps_levels, {}))
                      .when(sources)
                      .make(pass_integers)
                      .only_with(&RewriteOptions::integers));
  const auto numbers = is<Dequantize>().that(has_scales);
  rules.push_back(rule("int8-pass-channels",
                       "Transpose and Reshape pass on integers with a scale for each channel",
                       RuleSet::integers, is<Transpose, Reshape, Squeeze, Unsqueeze>(numbers))
                      .when([=](const Match& m) { return moved_axis(m, numbers); })
                      .make([=](Rewrite& r, std::size_t axis) { pass_channels(r, numbers, axis); })
                      .only_with(&RewriteOptions::integers));
  const auto moved = node("operator that passes elements on", keeps_levels, {})
                         .used_once()
                         .that([](const Graph&, const Node& n) { return n.outputs.size() == 1; });
  const auto quantize = is<Quantize>(moved).that(rounds);
  rules.push_back(rule("int8-round-before", "Values are rounded to integers before they are moved or joined",
                       RuleSet::integers, quantize)
                      .when([=](const Match& m) { return can_be_rounded(m, moved); })
                      .make([=](Rewrite& r) { round_before(r, moved); })
                      .only_with(&RewriteOptions::integers));
  rules.push_back(rule("int8-same-levels",
                       "Removes conversions of integers to floats and back to the same integers",
                       RuleSet::integers, is<Quantize>(any()).that(rounds))
                      .when(comes_back)
                      .make([](Rewrite& r, const Function& f) {
                        for (const auto id : f.steps)
                          if (id != r.match().root()) r.absorb(id);
                        r.replace(f.from.integers);
                      })
                      .only_with(&RewriteOptions::integers));
}

}  // namespace lamina
