#include "formats/booleans.h"

#include <algorithm>

namespace lamina {

Tensor normalized(Tensor t) {
  if (t.element_type() != ElementType::boolean) return t;
  const auto* p = reinterpret_cast<const unsigned char*>(t.raw());
  if (std::all_of(p, p + t.size(), [](unsigned char v) { return v <= 1; })) return t;
  Tensor copy = t.clone();
  for (std::size_t i = 0; i < copy.size(); ++i) copy.raw()[i] = std::byte(p[i] != 0);
  return copy;
}

}  // namespace lamina
