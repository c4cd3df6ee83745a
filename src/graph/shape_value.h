#pragma once
/// Values that are computed from shapes: what an operator's hook `shape_value` sees.
#include "graph/infer.h"

namespace lamina {

/// The elements of an integer value of few elements as dimensions; nothing where they are not known.
using ShapeValue = std::optional<std::vector<Dim>>;

class ShapeValueContext {
 public:
  virtual ~ShapeValueContext() = default;
  virtual const Node& node() const = 0;
  virtual const Shape& shape(std::size_t input) const = 0;
  /// The input's value, followed where it comes from.
  virtual ShapeValue input(std::size_t i) = 0;
  /// The one element of an input, as a bound: INT64_MAX stands for the end.
  virtual std::optional<std::int64_t> bound(std::size_t i) = 0;
  /// The elements of input 0 under another shape; only values of rank 0 and 1 are followed.
  virtual ShapeValue same_elements() = 0;
};

/// Each element of a result by `f` of two dimensions, a single one with each of the others; nothing where one
/// may be negative (-1 is a mark, not a size), or f gives nothing.
template <class F>
ShapeValue combine_sizes(ShapeValueContext& c, const F& f) {
  const auto a = c.input(0), b = c.input(1);
  if (!a || !b || (a->size() != b->size() && a->size() != 1 && b->size() != 1)) return std::nullopt;
  std::vector<Dim> out;
  for (std::size_t i = 0; i < std::max(a->size(), b->size()); ++i) {
    const Dim x = (*a)[a->size() == 1 ? 0 : i], y = (*b)[b->size() == 1 ? 0 : i];
    const std::optional<Dim> z = x.low() < 0 || y.low() < 0 ? std::nullopt : std::optional<Dim>(f(x, y));
    if (!z) return std::nullopt;
    out.push_back(*z);
  }
  return out;
}

}  // namespace lamina
