#pragma once
/// The operands of products of integers: convolutions and matrix products of u8 or i8 whose sums are i32.
///
///     sum over k of (x - x_zero) * (w - w_zero)
///
/// Zero points of weights are subtracted when these are packed. With pairs, that of the source is when it is
/// copied as numbers of 16 bits: borders are zeros then. Quads read u8, signed sources with 128 added; what
/// the zero point gives with all weights that a sum has is what it begins with.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "kernels/native/gemm/product.h"

namespace lamina::integers {

struct Operands {
  gemm::Arithmetic arithmetic = gemm::Arithmetic::pairs;
  bool signed_source = false;
  ElementType weights = ElementType::i8;   ///< or u8, or i16 with numbers of 9 bits
  std::int32_t source_zero = 0;            ///< where it is a constant
  bool zero_at_run = false;                ///< else
  std::vector<std::int32_t> weight_zeros;  ///< none, one, or one per column

  gemm::Units units() const { return gemm::units_of(arithmetic); }
  /// True if the operands are bytes: quads, small ones or not.
  bool quads() const { return units().element == 1; }
  /// In windows that may begin anywhere (gemm/matched_order.h).
  bool matched() const { return arithmetic == gemm::Arithmetic::matched_quads; }
  /// Words that hold so many adjacent numbers.
  std::int64_t words(std::int64_t numbers) const {
    using gemm::MatchedOrder;
    return matched() ? ceil_div(numbers, MatchedOrder::kWindow) * MatchedOrder::kLeastWords
                     : ceil_div(numbers, units().in_word());
  }
  std::int64_t weight_bytes() const { return bits_of(weights) / 8; }
  Family rate() const {
    return arithmetic == gemm::Arithmetic::quads ? Family::native_vnni : Family::native_int8;
  }
  std::int32_t zero_of_column(std::int64_t column) const {
    return weight_zeros.empty()
               ? 0
               : weight_zeros[weight_zeros.size() == 1 ? 0 : static_cast<std::size_t>(column)];
  }
  /// The source's zero point in a run with that input.
  std::int32_t zero(const void* input) const;
  /// Weight i of those that have that type.
  std::int32_t weight(const void* list, std::int64_t i) const {
    if (weights == ElementType::i16) return static_cast<const std::int16_t*>(list)[i];
    return weights == ElementType::i8 ? static_cast<const std::int8_t*>(list)[i]
                                      : static_cast<const std::uint8_t*>(list)[i];
  }
  /// Zero point as quads store it: u8, signed values + 128.
  std::int32_t shifted(std::int32_t zero) const { return zero + (signed_source ? 128 : 0); }
  /// Sums begin with something.
  bool compensated() const { return quads() && (zero_at_run || shifted(source_zero) != 0); }
  /// For labels: "avx512_vnni_int8".
  std::string label(const Machine& machine) const;
  /// For keys of packings, and of what is known of weights alone.
  std::string key() const;
  std::string weights_key() const;
};

/// Possible operands of a Convolution or MatMul, the likeliest first: the values of weights are known when
/// they are packed, not while offering (plans in files have no weights). None, and a sentence, when there is
/// no code for the node. `columns`: as many zero points as weights may have.
std::vector<Operands> operands_of(const NodeView& v, std::int64_t columns, std::string& why);
/// The operands as matched quads, which may be faster than pairs: matching.h decides whether they are.
std::optional<Operands> matched_quads(const NodeView& v, const Operands& operands);

/// The best of the possible operands that fit the weights. `per_column`: number of adjacent weights of a
/// column, or 0.
Operands operands_for(const std::vector<Operands>& possible, const Tensor& weights, std::int64_t per_column,
                      WeightStore& store);

}  // namespace lamina::integers
