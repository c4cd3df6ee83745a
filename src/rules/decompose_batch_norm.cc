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
  struct Linear {
    Tensor scale, shift;  // by channel
  };
  rules.push_back(rule("decompose-batch-norm",
                       "Makes batch normalisation with constant statistics a Multiply and an Add",
                       RuleSet::normalize, norm)
                      .when([=](const Match& m) -> Found<Linear> {
                        if (!m.shape(x).ranked())
                          return Verdict::no("the rank of {} is not known", m.label(x));
                        if (m.shape(x).rank() < 2) return Verdict::no("{} has no channels", m.label(x));
                        const auto type = m.type(x).element;
                        if (!is_float(type) || m.type(gamma).element != type)
                          return Verdict::no("{} is {}, the statistics are {}", m.label(x), name_of(type),
                                             name_of(m.type(gamma).element));
                        const auto g = to_doubles(m.tensor(gamma)), b = to_doubles(m.tensor(beta)),
                                   mu = to_doubles(m.tensor(mean)), var = to_doubles(m.tensor(variance));
                        std::vector<double> scale(g.size()), shift(g.size());
                        const double epsilon = m.op<BatchNormInference>(norm).epsilon;
                        for (std::size_t c = 0; c < g.size(); ++c) {
                          scale[c] = g[c] / std::sqrt(var.at(c) + epsilon);
                          shift[c] = b.at(c) - mu.at(c) * scale[c];
                        }
                        const auto dims = along_axis(m.shape(x).rank(), 1, g.size());
                        const Linear found{from_doubles(type, dims, scale), from_doubles(type, dims, shift)};
                        if (!all_finite(found.scale) || !all_finite(found.shift))
                          return Verdict::no("the scale or the shift is not finite");
                        return found;
                      })
                      .make([=](Rewrite& r, const Linear& found) {
                        const auto scaled = r.add(Multiply{}, {r.match().value(x), r.constant(found.scale)});
                        r.replace(r.add(Add{}, {scaled, r.constant(found.shift)}));
                      }));
}

}  // namespace lamina
