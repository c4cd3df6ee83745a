#include "check/loss.h"

#include <algorithm>
#include <cmath>

#include "ops/eval.h"

namespace lamina::checking {

void Loss::see(ValueId v, const Interval& x) {
  const Node& n = graph_.node(graph_.producer(v));
  behind_[v.index] = n.op.has(Trait::levels) || std::any_of(n.inputs.begin(), n.inputs.end(), [&](ValueId i) {
                       return i.valid() && behind_[i.index];
                     });
  if (behind_[v.index] || x.radius.empty() || !is_float(x.middle.element_type())) return;
  double largest = 0;
  for (const double e : to_doubles(x.middle.to_aligned()))
    if (std::isfinite(e)) largest = std::max(largest, std::fabs(e));
  const double radius = *std::max_element(x.radius.begin(), x.radius.end());
  if (radius > 0) worst_ = std::max(worst_, radius / largest);
}

}  // namespace lamina::checking
