#include "kernels/onednn/convolution_offer.h"

namespace lamina::onednn {

double multiply_adds(const Dims& y, const Dims& w) {
  double n = static_cast<double>(element_count(y));
  for (std::size_t i = 1; i < w.size(); ++i) n *= static_cast<double>(w[i]);
  return n;
}

bool is_depthwise(const Dims& w, std::int64_t groups) { return groups > 1 && w[1] == 1 && w[0] == groups; }

ElementType weights_type(ElementType source) { return is_byte(source) ? ElementType::i8 : source; }

bool is_product(std::string_view implementation) {
  return implementation.find("gemm") != std::string_view::npos &&
         implementation.find("brg") == std::string_view::npos;
}

Verdict takes(const NodeView& v) {
  if (auto verdict = multiplies(v); !verdict) return verdict;
  const auto rank = v.rank(0);
  if (rank < 3 || rank > 5) return Verdict::no("rank {}, wanted 3 to 5", rank);
  if (v.has(2) && v.rank(2) != 1 && v.dims(2).size() > 1) return Verdict::no("bias of rank {}", v.rank(2));
  if (element_count(v.out_dims()) == 0 || element_count(v.dims(0)) == 0) return Verdict::no("empty tensors");
  return Verdict::yes();
}

Verdict is_right(const NodeView& v, std::string_view implementation, const PostOps& post,
                 const Integers& integers) {
  if (!is_byte(multiplied(v))) return Verdict::yes();
  if (auto verdict = is_exact(implementation); !verdict) return verdict;
  const auto w = v.dims(1), y = v.out_dims();
  const auto* convolution = v.op<Convolution>();
  if (convolution && post.operands && v.machine().library != Isa::avx512 &&
      is_depthwise(w, convolution->groups) && y[1] % 8 != 0)
    return Verdict::no("int8: {} is wrong with an operand and {} channels", implementation, y[1]);
  if (post.result != ElementType::i32) return Verdict::yes();
  const auto groups = convolution ? convolution->groups : v.op<ConvolutionBackpropData>()->groups;
  const auto numbers = static_cast<std::int64_t>(element_count(w));
  return integers.stores_sums(implementation, convolution ? numbers / w[0] : numbers / (w[1] * groups));
}

/// With AVX2, weights of a few channels are read through a mask that runs into pages of others: up to 200
/// times as slow as it should be.
Verdict wide_enough(const Machine& machine, std::string_view implementation, std::int64_t channels) {
  if (machine.library == Isa::avx2 && channels < 4 && implementation.find("brg") != std::string_view::npos)
    return Verdict::no("{}: {} output channels of a group, wanted 4 with AVX2", implementation, channels);
  return Verdict::yes();
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
