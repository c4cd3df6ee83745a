#pragma once
/// Attention heads and positions: what ONNX's attentions and those of com.microsoft share.
#include "formats/onnx/call.h"

namespace lamina::onnx {

/// A number of heads, given by an attribute: 1 or more.
std::int64_t read_heads(const Call& c, std::string_view name);
/// Throws unless the rank is known and one of two.
void check_rank(const Call& c, ValueId v, std::string_view what, std::size_t rank, std::size_t or_rank = 0);
/// [N, L, heads * size] as [N, L, heads, size].
ValueId apart(Call& c, ValueId v, std::int64_t heads);
/// [N, L, heads * size] as [N, heads, L, size].
ValueId split_heads(Call& c, ValueId v, std::int64_t heads);
/// [N, heads, L, size] as [N, L, heads * size].
ValueId join_heads(Call& c, ValueId v);
/// i64 0 .. size - 1, of a scalar.
ValueId counted(Call& c, ValueId size);
/// The sizes of axes [first, last), i64 [last - first].
ValueId sizes_of(Call& c, ValueId v, std::int64_t first, std::int64_t last);
/// 1 / sqrt(size of a head) of queries [N, heads, L, size], which may show at run time; a scalar of their
/// type.
ValueId scale_by_size(Call& c, ValueId q);
/// The attribute scale, or else scale_by_size().
ValueId scale_of_scores(Call& c, ValueId q);
/// cap * tanh(scores / cap); the scores themselves for a cap of 0.
ValueId soft_capped(Call& c, ValueId scores, double cap);

/// Queries, keys and values of one attention, [N, heads, L, E], [N, groups, S, E] and [N, groups, S, V].
struct QueryKeyValue {
  ValueId q, k, v;
};

/// Query heads that share keys and values, as an axis of their own: nothing is repeated.
class HeadGroups {
 public:
  /// Fails where the numbers of heads are known and do not divide.
  HeadGroups(Call& c, const QueryKeyValue& a);
  bool any() const { return sizes_.valid(); }
  /// Queries [N, groups, heads of a group, L, E]; keys and values [N, groups, 1, S, E].
  QueryKeyValue grouped() const;
  /// A mask that broadcasts to [N, heads, L, S], as one that broadcasts to [N, groups, heads of a group, L,
  /// S].
  ValueId grouped_mask(ValueId mask) const;
  /// [N, groups, heads of a group, L, size of `last`'s `axis`] as [N, heads, L, ...].
  ValueId ungrouped(ValueId v, ValueId last, std::int64_t axis) const;

 private:
  Call& c_;
  QueryKeyValue a_;
  ValueId sizes_;  ///< groups, heads of a group: i64 [2]; absent where each head has keys of its own
};

// Families of ONNX's own attentions, for register_attention.
void register_rotary_embedding(ConverterTable& t);
void register_flex_attention(ConverterTable& t);
void register_linear_attention(ConverterTable& t);
void register_decoder_state(ConverterTable& t);

}  // namespace lamina::onnx
