#pragma once
/// Pairs of weights that pmaddubsw takes exactly. Two products of u8 by i8 stay within 16 bits where neither
/// the two positive nor the two negative weights exceed 128 together. Few weights are that large; so within
/// windows of 16 numbers of k, partners are sought that are safe in all columns of some panels, and the
/// source is read in that order (gemm/matched_order.h). A number without a partner has a pair of its own,
/// with a zero.
#include "kernels/native/gemm/product.h"
#include "kernels/native/integer/operands.h"
#include "kernels/native/integer/weights.h"

namespace lamina::integers {

/// Whether k may be cut into windows: numbers that lie together, for each tap.
inline bool has_windows(std::int64_t together) { return together >= gemm::MatchedOrder::kWindow; }

/// Sets the order of a product of matched quads, which the tensor holds; nothing where pairs of 16 bits are
/// faster.
std::optional<Tensor> match(gemm::Product& p, const Operands& o, const WeightPlaces& places,
                            const Tensor& weights, WeightStore& store);

/// What `make` makes of `operands`, or in the place of pairs of `matched`, where these are faster.
template <class Make>
auto fastest(const Operands& operands, const std::optional<Operands>& matched, const Tensor& weights,
             WeightStore& store, const Make& make) {
  auto made = make(operands);
  if (!matched || operands.quads()) return made;
  auto other = make(*matched);
  const auto order = match(other.product, *matched, other.places, weights, store);
  if (!order) return made;
  other.order = *order;
  return other;
}

/// pack_weights() in the product's order.
void pack_matched(const gemm::Product& p, const Operands& o, const WeightPlaces& places, const void* weights,
                  std::byte* to);

}  // namespace lamina::integers
