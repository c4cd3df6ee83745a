#pragma once
/// Windows of convolutions and poolings.
#include <cstddef>
#include <cstdint>

#include "ops/pooling.h"
#include "rules/support.h"

namespace lamina {

/// Positions beside the picture may be read.
inline bool may_pad(const Window& w) {
  const bool same = w.auto_pad == AutoPad::same_upper || w.auto_pad == AutoPad::same_lower;
  return same || !all_are(w.pads_begin, 0) || !all_are(w.pads_end, 0);
}

/// No window of a MaxPool or AvgPool lies outside the picture as a whole: what is given for it is no element,
/// nor a mean of any.
template <class Pooling>
bool pooling_windows_have_elements(const Pooling& op) {
  const bool padded = may_pad(op);
  const bool goes_on = op.rounding_type != RoundingType::floor;  // beyond the picture's end
  if (goes_on && padded) return false;
  const auto at = [](const Ints& list, std::size_t i, std::int64_t other) {
    return i < list.size() ? list[i] : other;
  };
  for (std::size_t i = 0; i < op.kernel.size(); ++i) {
    const auto dilation = at(op.dilations, i, 1), extent = (op.kernel[i] - 1) * dilation + 1;
    if (goes_on && at(op.strides, i, 1) > extent) return false;
    if (padded && dilation != 1) return false;  // its elements may be on both sides
    if (at(op.pads_begin, i, 0) >= extent || at(op.pads_end, i, 0) >= extent) return false;
  }
  return true;
}

}  // namespace lamina
