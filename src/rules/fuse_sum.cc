/// Arithmetic with another tensor joins the epilogue of the convolution or matrix product before it.
#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "rules/rules.h"
#include "rules/support.h"

namespace lamina {
namespace {

/// Constants of one value per channel are scales and shifts: fuse_simple.cc takes them.
bool is_scale(const Graph& g, const Node& n) {
  for (std::size_t i = 0; i < 2; ++i) {
    const auto host = g.producer(n.inputs[1 - i]);
    if (!g.constant(n.inputs[i]) || !host.valid()) continue;
    const auto &operand = g.type(n.inputs[i]).shape, &target = g.type(n.inputs[1 - i]).shape;
    const auto axis = channel_axis(g, g.node(host));
    if (target.ranked() && axis < target.rank() && one_per_channel("", operand, target, axis)) return true;
  }
  return false;
}

Rule fuse_with_tensor(const std::string& name, const std::string& doc, const Pattern& host) {
  // Nothing but the arithmetic reads the host, so that the other operand cannot depend on it.
  const auto other = any();
  const auto sum = is<Add, Subtract, Multiply, Divide, Maximum, Minimum>(host, other)
                       .any_order()
                       .that([](const Graph& g, const Node& n) { return !is_scale(g, n); });
  return rule(name, doc, RuleSet::runtime, sum)
      .when([=](const Match& m) -> Verdict {
        if (!is_float(m.type(host).element)) return Verdict::no("{} computes with integers", m.label(host));
        return does_not_grow(m.label(other), m.shape(other), m.shape(host));
      })
      .make([=](Rewrite& r) {
        const Match& m = r.match();
        const auto fused = append_stage(r, m.id(host), m.root(), slot_of(m.root_node(), m.value(host)));
        r.replace(r.graph().node(fused).outputs[0]);
      });
}

}  // namespace

void add_fuse_sum(Rules& rules) {
  rules.push_back(
      fuse_with_tensor("fuse-conv-sum", "Sums, products, ... with a tensor join the convolution before them",
                       is<Convolution, ConvolutionBackpropData, BinaryConvolution>().used_once()));
  rules.push_back(fuse_with_tensor("fuse-fc-sum",
                                   "Sums, products, ... with a tensor join the matrix product before them",
                                   is<MatMul>().used_once()));
}

}  // namespace lamina
