#pragma once
/// Parts of com.microsoft's attentions.
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
/// The least finite number of v's type, as v has them, where `seen` does not hold.
ValueId hidden_unless(Call& c, ValueId seen, ValueId v);

/// What takes part in one attention; [N, heads, L, size] each.
struct Attended {
  ValueId q, k, v;  ///< keys and values with those from the past
  ValueId past;     ///< keys from the past; may be absent
  ValueId key_mask, bias;
  bool causal = false;
  double filter = -10000;       ///< added to the scores of what the key mask hides
  std::optional<double> scale;  ///< else 1 / sqrt(size)
  bool starts_too = false;      ///< a key mask of 2N elements: ends, then starts
};

/// softmax(q * k^T * scale + masks) * v as [N, L, heads * size].
ValueId attend(Call& c, const Attended& a);

}  // namespace lamina::onnx
