#pragma once
/// Values that are computed from shapes: what an operator's hook `shape_value` sees.
#include "graph/infer.h"

namespace lamina {

/// The elements of an integer value of few elements as dimensions; nothing where they are not known.
using ShapeValue = std::optional<std::vector<Dim>>;

/// An element of which nothing is known: what is computed with sizes may be negative, as sizes are not.
inline Dim any_value() { return {INT64_MIN, INT64_MAX}; }

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

/// Each element of a result by `f` of two sizes, a single one with each of the others, of which there may be
/// none; any value where one of the two may be negative. Nothing where one is (-1 is a mark, not a size), or
/// f gives nothing.
template <class F>
ShapeValue combine_sizes(ShapeValueContext& c, const F& f) {
  const auto a = c.input(0), b = c.input(1);
  if (!a || !b) return std::nullopt;
  const auto count = a->size() == 1 ? b->size() : a->size();
  if (b->size() != count && b->size() != 1) return std::nullopt;
  std::vector<Dim> out;
  for (std::size_t i = 0; i < count; ++i) {
    const Dim x = (*a)[a->size() == 1 ? 0 : i], y = (*b)[b->size() == 1 ? 0 : i];
    if ((x.known() && x.size() < 0) || (y.known() && y.size() < 0)) return std::nullopt;
    const auto z = x.low() < 0 || y.low() < 0 ? std::optional(any_value()) : std::optional<Dim>(f(x, y));
    if (!z) return std::nullopt;
    out.push_back(*z);
  }
  return out;
}

}  // namespace lamina
