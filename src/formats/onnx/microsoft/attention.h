#pragma once
/// Parts of com.microsoft's attentions.
#include "formats/onnx/heads.h"

namespace lamina::onnx {

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

/// softmax(q * k^T * scale + masks) * v as [N, L, heads * size]. `scores`, where it is wanted: what the
/// softmax is of.
ValueId attend(Call& c, const Attended& a, ValueId* scores = nullptr);

}  // namespace lamina::onnx
