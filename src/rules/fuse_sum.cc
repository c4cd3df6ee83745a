/// The addition of another tensor joins the epilogue of the convolution before it.
#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "rules/rules.h"
#include "rules/support.h"

namespace lamina {

void add_fuse_sum(Rules& rules) {
  // Nothing but the Add reads the convolution, so that the other operand cannot depend on it.
  const auto conv = is<Convolution, ConvolutionBackpropData, BinaryConvolution>().used_once();
  const auto other = variable();
  const auto sum = is<Add>(conv, other).any_order();
  rules.push_back(
      rule("fuse-conv-sum", "The addition of a tensor of the same shape joins the convolution before it",
           RuleSet::runtime, sum)
          .when([=](const Match& m) -> Verdict {
            if (!is_float(m.type(conv).element))
              return Verdict::no("{} computes with integers", m.label(conv));
            if (!m.shape(other).same(m.shape(conv)))
              return Verdict::no("{} has shape {}, the convolution {}: not provably the same", m.label(other),
                                 to_string(m.shape(other)), to_string(m.shape(conv)));
            return Verdict::yes();
          })
          .make([=](Rewrite& r) {
            const Match& m = r.match();
            const auto fused = append_stage(r, m.id(conv), m.root(), slot_of(m.root_node(), m.value(conv)));
            r.replace(r.graph().node(fused).outputs[0]);
          }));
}

}  // namespace lamina
