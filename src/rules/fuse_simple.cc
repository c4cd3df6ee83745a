/// Activations, scales, shifts, comparisons, conversions and quantise steps join the epilogue of the
/// convolution, matrix product or pooling before them.
#include <algorithm>

#include "base/element_types.h"
#include "extension/custom_op.h"
#include "ops/activation.h"
#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/pooling.h"
#include "ops/quantization.h"
#include "rules/extension_rules.h"
#include "rules/int8.h"
#include "rules/rules.h"
#include "rules/support.h"

namespace lamina {
namespace {

constexpr std::size_t kMostStages = 128;  // with each one more the epilogue is copied

/// Every operand of the stage but the host's result is a constant that fits the host's channels.
Verdict operands_fit(const Match& m, const Pattern& host) {
  const Graph& g = m.graph();
  const Node& stage = m.root_node();
  const bool parameters = stage.op.has(Trait::unary_elementwise);
  for (auto v : stage.inputs) {
    if (!v.valid() || v == m.value(host)) continue;
    if (!g.constant(v)) return Verdict::no("{} is not a constant", m.label(v));
    if (parameters) continue;
    auto shape = g.type(v).shape;
    if (stage.op.is<PRelu>()) shape = prelu_slope_shape(m.shape(host), shape);
    if (auto verdict = one_per_channel(m.label(v), shape, m.shape(host), channel_axis(g, m.node(host)));
        !verdict)
      return verdict;
  }
  return Verdict::yes();
}

bool is_pooling(const Node& n) { return n.op.is<MaxPool>() || n.op.is<AvgPool>(); }

/// To or from integers of 8 bits, with one scale or one per index of an axis.
bool steps_to_integers(const Graph& g, const Node& n) {
  const auto* q = n.op.as<Quantize>();
  return q && q->block_size == 0 && bits_of(q->destination_type) == 8 && g.type(n.inputs[0]).shape.ranked();
}
bool steps_back(const Node& n) {
  const auto* d = n.op.as<Dequantize>();
  return d && d->block_size == 0;
}

/// f32 to a half, or the way back.
bool halves(const Graph& g, const Node& n) {
  return g.type(n.inputs[0]).element == ElementType::f32 && is_half(g.type(n.outputs[0]).element);
}
bool widens(const Graph& g, const Node& n) { return g.type(n.outputs[0]).element == ElementType::f32; }

/// The epilogue ends in integers.
bool ends_quantised(const Node& host) {
  const auto* body = epilogue(host);
  const auto last = body ? body->producer(body->results()[0].value) : NodeId{};
  return last.valid() && body->node(last).op.is<Quantize>();
}

Verdict all_constant(const Match& m, NodeId step) {
  const auto& node = m.graph().node(step);
  for (std::size_t i = 1; i < node.inputs.size(); ++i)
    if (node.inputs[i].valid() && !m.graph().constant(node.inputs[i]))
      return Verdict::no("{} is not a constant", m.label(node.inputs[i]));
  return Verdict::yes();
}

/// From the sums of integers to f32, as the first of all stages.
bool widens_sums(const Match& m, const Pattern& host) {
  return int8::widens_sums(m.graph(), m.root_node()) &&
         m.graph().producer(m.root_node().inputs[0]) == m.id(host);
}

/// What the stage makes is stored as it is: else element-wise operators become one node of their own.
Verdict only_stored(const Match& m) {
  const Graph& g = m.graph();
  const auto made = m.root_node().outputs[0];
  if (m.root_node().op.is<Quantize>() && !steps_to_integers(g, m.root_node()))
    return Verdict::no("it quantises to {}, wanted 8 bits and no scales by block",
                       name_of(g.type(made).element));
  if (is_storage_type(g.type(made).element)) return Verdict::no("it packs {}", name_of(g.type(made).element));
  if (m.integers && steps_to_integers(g, m.root_node())) return Verdict::yes();
  for (const auto& use : g.value(made).uses)
    if (g.node(use.node).op.has(Trait::elementwise))
      return Verdict::no("'{}' computes with the {} that it makes", g.label(use.node),
                         name_of(g.type(made).element));
  return Verdict::yes();
}

/// Sums of integers become floats first; integers that were rounded may become numbers again.
Verdict types_fit(const Match& m, const Pattern& host) {
  const auto &from = m.type(host), &to = m.graph().type(m.root_node().outputs[0]);
  const bool pooling = is_pooling(m.node(host));
  if (widens_sums(m, host)) return Verdict::yes();
  if (!is_float(from.element)) {
    if ((!pooling && !m.integers) || !ends_quantised(m.node(host)) || !steps_back(m.root_node()) ||
        !is_float(to.element))
      return Verdict::no("{} computes with integers", m.label(host));
  } else if (from.element != to.element && !pooling) {
    return only_stored(m);
  } else if (from.element != to.element && !steps_to_integers(m.graph(), m.root_node())) {
    return Verdict::no("it changes {} to {}", name_of(from.element), name_of(to.element));
  }
  return Verdict::yes();
}

Rule fuse_into(const std::string& name, const std::string& doc, const Pattern& host) {
  const auto unary = unary_elementwise(host);
  const auto shift = is<Add, Multiply, Maximum, Minimum>(host, constant_only()).any_order();
  const auto ordered = is<Subtract, Divide, Power>(host, constant_only());
  const auto reversed = is<Subtract, Divide>(constant_only(), host);
  const auto compared =
      is<Equal, NotEqual, Greater, GreaterEqual, Less, LessEqual>(host, constant_only()).any_order();
  const auto prelu = is<PRelu>(host, any());
  const auto levels = is<FakeQuantize>(host, any(), any(), any(), any());
  // What is rounded to integers and comes back at once.
  const auto rounded = is<Quantize>(host).that(steps_to_integers).used_once();
  const auto rounds = is<Dequantize>(rounded).that([](const Graph&, const Node& n) { return steps_back(n); });
  const auto halved = is<Convert>(host).that(halves).used_once();
  const auto widened = is<Convert>(halved).that(widens);
  return rule(name, doc, RuleSet::runtime,
              either({unary, shift, ordered, reversed, compared, prelu, levels, rounds, widened}))
      .when([=](const Match& m) -> Verdict {
        if (const auto* body = epilogue(m.node(host)); body && body->node_slots() >= kMostStages)
          return Verdict::no("the epilogue of {} has {} stages already", m.label(host), body->node_slots());
        if (const auto verdict = types_fit(m, host); !verdict) return verdict;
        if (m.has(widened)) return Verdict::yes();
        if (!m.has(rounds)) return operands_fit(m, host);
        const auto verdict = all_constant(m, m.id(rounded));
        return verdict ? all_constant(m, m.root()) : verdict;
      })
      .make([=](Rewrite& r) {
        const Match& m = r.match();
        std::vector<NextStage> stages;
        if (m.has(rounds) || m.has(widened))
          stages = {{m.id(m.has(rounds) ? rounded : halved), 0}, {m.root(), 0}};
        else
          stages = {{m.root(), slot_of(m.root_node(), m.value(host))}};
        r.replace(r.graph().node(append_stages(r, m.id(host), stages)).outputs[0]);
      });
}

/// A value that is read twice by one operator is no chain of stages.
Rule square() {
  const auto x = node("convolution, matrix product or pooling",
                      [](const Graph&, const Node& n) { return is_host(n); }, {});
  return rule("fuse-square",
              "Turns the result of a convolution, matrix product or pooling times itself into Power",
              RuleSet::runtime, is<Multiply>(x, x))
      .when([=](const Match& m) -> Verdict {
        if (m.graph().readers(m.value(x)) != 2) return Verdict::no("{} is also read by others", m.label(x));
        if (m.type(x).element != ElementType::f32)
          return Verdict::no("{} is {}", m.label(x), name_of(m.type(x).element));
        return Verdict::yes();
      })
      .make([=](Rewrite& r) {
        const auto two = r.constant(from_doubles(ElementType::f32, {}, {2}));
        r.replace(r.add(Power{}, {r.match().value(x), two}));
      });
}

}  // namespace

Rule fuse_custom_simple() {
  const auto takes = [](const Graph&, const Node& n) {
    const auto* op = custom_op(n.op);
    return op && op->declared().has(LAMINA_TAKES_STAGES);
  };
  return fuse_into("fuse-custom-simple", "Activations, scales and shifts join the custom layer before them",
                   node("custom layer that takes stages", takes, {}).used_once());
}

void add_fuse_simple(Rules& rules) {
  rules.push_back(square());
  rules.push_back(fuse_into("fuse-conv-simple",
                            "Activations, scales and shifts join the convolution before them",
                            is<Convolution, ConvolutionBackpropData, BinaryConvolution>().used_once()));
  rules.push_back(fuse_into("fuse-fc-activation",
                            "Activations, scales and shifts join the matrix product before them",
                            is<MatMul>().used_once()));
  const auto pooling =
      is<MaxPool, AvgPool>().that([](const Graph&, const Node& n) { return n.outputs.size() == 1; });
  rules.push_back(fuse_into("fuse-pooling-fakequantize",
                            "Quantise steps, activations, scales and shifts join the pooling before them",
                            pooling.used_once()));
}

}  // namespace lamina
