#include "formats/booleans.h"

#include <algorithm>

#include "base/cancellation.h"

namespace lamina {

bool are_proper_booleans(std::span<const std::byte> bytes) {
  bool proper = true;
  for_pieces(bytes.size(), [&](std::size_t begin, std::size_t end) {
    proper = proper && std::all_of(bytes.begin() + static_cast<std::ptrdiff_t>(begin),
                                   bytes.begin() + static_cast<std::ptrdiff_t>(end),
                                   [](std::byte b) { return b <= std::byte{1}; });
  });
  return proper;
}

Tensor normalized(Tensor t) {
  if (t.element_type() != ElementType::boolean) return t;
  const auto* const p = t.raw();
  if (are_proper_booleans({p, t.size()})) return t;
  Tensor copy = t.clone();
  for_pieces(copy.size(), [&](std::size_t begin, std::size_t end) {
    for (auto i = begin; i < end; ++i) copy.raw()[i] = std::byte(p[i] != std::byte{0});
  });
  return copy;
}

}  // namespace lamina
