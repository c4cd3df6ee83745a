/// Activations, scales, shifts and quantise steps join the epilogue of the convolution, matrix product or
/// pooling before them.
#include <algorithm>

#include "ops/activation.h"
#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/pooling.h"
#include "ops/quantization.h"
#include "rules/rules.h"
#include "rules/support.h"

namespace lamina {
namespace {

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

/// To integers of one scale, or one per index of an axis.
bool quantises(const Match& m) {
  const auto* q = m.root_node().op.as<Quantize>();
  return q && q->block_size == 0 && bits_of(q->destination_type) == 8;
}

Rule fuse_into(const std::string& name, const std::string& doc, const Pattern& host) {
  const auto unary = unary_elementwise(host);
  const auto shift = is<Add, Multiply, Maximum, Minimum>(host, constant_only()).any_order();
  const auto ordered = is<Subtract, Divide>(host, constant_only());
  const auto prelu = is<PRelu>(host, any());
  const auto levels = is<FakeQuantize>(host, any(), any(), any(), any());
  return rule(name, doc, RuleSet::runtime, either({unary, shift, ordered, prelu, levels}))
      .when([=](const Match& m) -> Verdict {
        const auto &from = m.type(host), &to = m.graph().type(m.root_node().outputs[0]);
        if (!is_float(from.element)) return Verdict::no("{} computes with integers", m.label(host));
        if (from.element != to.element && !(quantises(m) && is_pooling(m.node(host))))
          return Verdict::no("it changes {} to {}", name_of(from.element), name_of(to.element));
        return operands_fit(m, host);
      })
      .make([=](Rewrite& r) {
        const Match& m = r.match();
        const auto running = slot_of(m.root_node(), m.value(host));
        const auto fused = append_stage(r, m.id(host), m.root(), running);
        r.replace(r.graph().node(fused).outputs[0]);
      });
}

}  // namespace

void add_fuse_simple(Rules& rules) {
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
