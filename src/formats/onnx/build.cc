#include "formats/onnx/build.h"

#include <numeric>

#include "formats/onnx/importer.h"
#include "ops/elementwise.h"
#include "ops/eval.h"
#include "ops/gathering.h"
#include "ops/generation.h"
#include "ops/movement.h"
#include "ops/shaping.h"

namespace lamina::onnx {
namespace {

bool all_known(const Ints& pattern) {
  for (auto d : pattern)
    if (d <= 0) return false;
  return true;
}

}  // namespace

ValueId reshape(Call& c, ValueId v, const Ints& pattern) {
  const auto& shape = c.type(v).shape;
  if (shape.known() && shape.sizes() == pattern) return v;
  if (const auto* t = c.graph().constant(v); t && all_known(pattern) && element_count(pattern) == t->size())
    return c.constant(t->reshaped(pattern));
  return reshape(c, v, c.ints_constant(pattern));
}

ValueId reshape(Call& c, ValueId v, ValueId pattern) { return c.add(Reshape{}, {v, pattern}); }

ValueId to_scalar(Call& c, ValueId v) {
  if (c.rank(v) == std::size_t{0}) return v;
  if (const auto* t = c.graph().constant(v); t && t->size() == 1) return c.constant(t->reshaped({}));
  return reshape(c, v, c.constant(Tensor(ElementType::i64, {0})));
}

ValueId to_vector(Call& c, ValueId v) {
  if (c.rank(v) == std::size_t{1}) return v;
  return reshape(c, v, Ints{1});
}

ValueId unsqueeze(Call& c, ValueId v, const Ints& axes) {
  return axes.empty() ? v : c.add(Unsqueeze{}, {v, c.ints_constant(axes)});
}

ValueId squeeze(Call& c, ValueId v, const Ints& axes) {
  return axes.empty() ? v : c.add(Squeeze{}, {v, c.ints_constant(axes)});
}

ValueId transpose(Call& c, ValueId v, const Ints& order) {
  return c.add(Transpose{}, {v, c.ints_constant(order)});
}

ValueId convert(Call& c, ValueId v, ElementType type) {
  return c.element(v) == type ? v : c.add(Convert{type}, {v});
}

ValueId concat(Call& c, Values parts, std::int64_t axis) {
  return parts.size() == 1 ? parts[0] : c.add(Concat{axis}, std::move(parts));
}

ValueId shape_of(Call& c, ValueId v) { return c.add(ShapeOf{}, {v}); }

ValueId rank_of(Call& c, ValueId v) {
  if (const auto rank = c.rank(v)) return c.int_constant(static_cast<std::int64_t>(*rank));
  return to_scalar(c, shape_of(c, shape_of(c, v)));
}

ValueId slice(Call& c, ValueId v, std::int64_t axis, std::int64_t start, std::int64_t stop) {
  return c.add(Slice{}, {v, c.ints_constant({start}), c.ints_constant({stop}), c.ints_constant({1}),
                         c.ints_constant({axis})});
}

ValueId pick(Call& c, ValueId v, std::int64_t axis, std::int64_t index) {
  return c.add(Gather{}, {v, c.int_constant(index), c.int_constant(axis)});
}

ValueId axes_from(Call& c, ValueId v, std::int64_t first) {
  if (const auto rank = c.rank(v)) {
    Ints axes;
    for (auto a = first; a < static_cast<std::int64_t>(*rank); ++a) axes.push_back(a);
    return c.ints_constant(axes);
  }
  return c.add(Range{ElementType::i64}, {c.int_constant(first), rank_of(c, v), c.int_constant(1)});
}

ValueId add(Call& c, ValueId a, ValueId b) { return c.add(Add{}, {a, b}); }
ValueId subtract(Call& c, ValueId a, ValueId b) { return c.add(Subtract{}, {a, b}); }
ValueId multiply(Call& c, ValueId a, ValueId b) { return c.add(Multiply{}, {a, b}); }
ValueId divide(Call& c, ValueId a, ValueId b) { return c.add(Divide{false}, {a, b}); }

ValueId folded(Call& c, ValueId v) {
  if (c.graph().constant(v)) return v;
  auto known = c.known(v);
  if (!known) return v;
  const auto producer = c.graph().producer(v);
  if (c.graph().node(producer).outputs.size() == 1 && c.graph().readers(v) == 0) c.graph().erase(producer);
  return c.constant(std::move(*known));
}

void spend(Call& c, std::int64_t elements) {
  if ((c.importer().constants_budget -= elements) < 0) c.unsupported("constants of such a size");
}

ValueId filled(Call& c, ValueId value, ValueId shape) { return c.add(Broadcast{}, {value, shape}); }

}  // namespace lamina::onnx
