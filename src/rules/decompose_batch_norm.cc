/// Batch normalisation with constant statistics is a multiplication and an addition by channel.
#include <cmath>

#include "ops/elementwise.h"
#include "ops/normalization.h"
#include "rules/rules.h"
#include "rules/weights.h"

namespace lamina {

void add_decompose_batch_norm(Rules& rules) {
  const auto x = any(), gamma = constant(), beta = constant(), mean = constant(), variance = constant();
  const auto norm = is<BatchNormInference>(x, gamma, beta, mean, variance);
  rules.push_back(
      rule("decompose-batch-norm", "Makes batch normalisation with constant statistics a Multiply and an Add",
           RuleSet::normalize, norm)
          .when([=](const Match& m) -> Verdict {
            if (!m.shape(x).ranked()) return Verdict::no("the rank of {} is not known", m.label(x));
            if (m.shape(x).rank() < 2) return Verdict::no("{} has no channels", m.label(x));
            if (!is_float(m.type(x).element) || m.type(gamma).element != m.type(x).element)
              return Verdict::no("{} is {}, the statistics are {}", m.label(x), name_of(m.type(x).element),
                                 name_of(m.type(gamma).element));
            return Verdict::yes();
          })
          .make([=](Rewrite& r) {
            const Match& m = r.match();
            const auto g = to_doubles(m.tensor(gamma)), b = to_doubles(m.tensor(beta)),
                       mu = to_doubles(m.tensor(mean)), var = to_doubles(m.tensor(variance));
            std::vector<double> scale(g.size()), shift(g.size());
            const double epsilon = m.op<BatchNormInference>(norm).epsilon;
            for (std::size_t c = 0; c < g.size(); ++c) {
              scale[c] = g[c] / std::sqrt(var.at(c) + epsilon);
              shift[c] = b.at(c) - mu.at(c) * scale[c];
            }
            const auto dims = along_axis(m.shape(x).rank(), 1, g.size());
            const auto type = m.type(x).element;
            const auto factors = from_doubles(type, dims, scale), summands = from_doubles(type, dims, shift);
            if (!all_finite(factors) || !all_finite(summands))
              return r.refuse("the scale or the shift is not finite");
            const auto scaled = r.add(Multiply{}, {m.value(x), r.constant(factors)});
            r.replace(r.add(Add{}, {scaled, r.constant(summands)}));
          }));
}

}  // namespace lamina
