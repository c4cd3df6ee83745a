#include "kernels/native/binary/thresholds.h"

#include <algorithm>

#include "kernels/native/binary/packing.h"
#include "kernels/native/stages/sign_changes.h"
#include "ops/eval.h"

namespace lamina::binary {

std::optional<Thresholds> thresholds_of(const NodeView& v, std::int64_t counted) {
  if (v.inputs() != 2) return std::nullopt;
  const auto most = static_cast<float>(counted);
  const auto changes = sign_changes(v, ElementType::f32, -most - 1, most + 1);
  if (!changes) return std::nullopt;
  Thresholds t;
  for (std::size_t o = 0; o < changes->at.size(); ++o) {
    const bool first = changes->first[o], last = changes->last[o];
    const auto change = static_cast<float>(changes->at[o]) + 0.5F;
    t.opposite.push_back(first && !last);
    if (first == last)
      t.above.push_back(first ? -most - 1 : most + 1);
    else
      t.above.push_back(first ? -change : change);
  }
  return t;
}

Tensor Thresholds::turned(const Tensor& weights) const {
  const auto signs = signs_of(weights);
  const auto row = signs.size() / above.size();
  Ints bits;
  bits.reserve(signs.size());
  for (std::size_t i = 0; i < signs.size(); ++i) bits.push_back((signs[i] != 0) != opposite[i / row]);
  return from_ints(ElementType::u1, weights.shape(), bits);
}

std::string Thresholds::turned_key() const {
  std::string key = " turned ";
  for (std::size_t o = 0; o < opposite.size(); o += 4) {
    unsigned digit = 0;
    for (std::size_t k = o; k < std::min(o + 4, opposite.size()); ++k) digit = 2 * digit + opposite[k];
    key += "0123456789abcdef"[digit];
  }
  return key;
}

std::string Thresholds::above_key() const {
  return {reinterpret_cast<const char*>(above.data()), above.size() * sizeof(above[0])};
}

void Thresholds::take_from(Tensor& starts, std::int64_t outputs, std::int64_t group,
                           std::int64_t stride) const {
  auto values = starts.data<float>();
  const auto row = outputs / group * stride;
  for (std::int64_t kind = 0; kind < static_cast<std::int64_t>(values.size()) / row; ++kind)
    for (std::int64_t o = 0; o < outputs; ++o)
      values[static_cast<std::size_t>(kind * row + o / group * stride + o % group)] -=
          above[static_cast<std::size_t>(o)];
}

}  // namespace lamina::binary
