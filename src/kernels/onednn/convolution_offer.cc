#include "kernels/onednn/convolution_offer.h"

namespace lamina::onednn {

double multiply_adds(const Dims& y, const Dims& w) {
  double n = static_cast<double>(element_count(y));
  for (std::size_t i = 1; i < w.size(); ++i) n *= static_cast<double>(w[i]);
  return n;
}

bool is_depthwise(const Dims& w, std::int64_t groups) { return groups > 1 && w[1] == 1 && w[0] == groups; }

ElementType weights_type(ElementType source) { return is_byte(source) ? ElementType::i8 : source; }

Verdict takes(const NodeView& v) {
  if (auto verdict = multiplies(v); !verdict) return verdict;
  const auto rank = v.rank(0);
  if (rank < 3 || rank > 5) return Verdict::no("rank {}, wanted 3 to 5", rank);
  if (v.has(2) && v.rank(2) != 1 && v.dims(2).size() > 1) return Verdict::no("bias of rank {}", v.rank(2));
  if (element_count(v.out_dims()) == 0 || element_count(v.dims(0)) == 0) return Verdict::no("empty tensors");
  return Verdict::yes();
}

Asked asked_of(Primitive primitive, const NodeView& v, Layout layout, const PostOps& post,
               const Integers& integers, const Geometry& window, std::int64_t outputs) {
  return {.primitive = primitive,
          .node = v,
          .layout = layout,
          .post = &post,
          .integers = is_byte(multiplied(v)) ? &integers : nullptr,
          .window = &window,
          .bias = v.has(2) || !post.bias.empty(),
          .products = static_cast<std::int64_t>(element_count(v.dims(1))) / outputs};
}

/// What oneDNN's reorders take for weights that come at run time: of those of 8 bits as long as for many
/// bytes each, one by one where it sums them as well.
Cost packing_cost(const NodeView& v, const Desc& from, const Desc& to, const Integers& integers) {
  constexpr double kByte = 90, kSummedByte = 700;
  const bool sums = !integers.args().empty() || v.element(0) == ElementType::i8;
  const double bytes = is_byte(multiplied(v))
                           ? static_cast<double>(from.get_size()) * (sums ? kSummedByte : kByte)
                           : 2.0 * static_cast<double>(from.get_size() + to.get_size());
  return cost_of(v.machine(), Family::transpose, 0, bytes);
}

}  // namespace lamina::onednn
