#include "kernels/zero_points.h"

#include <algorithm>

#include "ops/convolution.h"
#include "ops/eval.h"

namespace lamina {
namespace {

/// The numbers of zero points, which have the type of the integers: 16 bits at most.
std::vector<std::int32_t> numbers_of(const Tensor& zeros) {
  const auto wide = to_numbers<std::int64_t>(zeros);
  return {wide.begin(), wide.end()};
}

}  // namespace

Verdict zero_points_of(const NodeView& v, ZeroPoints& out) {
  out.source_input = zero_point_input(v.node().op, 0);
  out.weights_input = zero_point_input(v.node().op, 1);
  for (const auto i : {out.source_input, out.weights_input})
    if (v.constant(i)) out.constants.push_back(i);
  if (v.has(out.source_input)) {
    const auto count = element_count(v.dims(out.source_input));
    if (count != 1) return Verdict::no("{} zero points of the source", count);
    const auto* zero = v.constant(out.source_input);
    out.source_at_run = !zero;
    if (zero) out.source = numbers_of(*zero)[0];
  }
  const auto* zeros = v.constant(out.weights_input);
  out.weights_at_run = v.has(out.weights_input) && !zeros;
  if (!zeros) return Verdict::yes();
  auto& list = out.weights = numbers_of(*zeros);
  if (std::adjacent_find(list.begin(), list.end(), std::not_equal_to()) == list.end() && !list.empty())
    list.resize(list[0] == 0 ? 0 : 1);
  return Verdict::yes();
}

}  // namespace lamina
