/// What converters build with (call.h).
#include "formats/tensorflow/call.h"
#include "ops/elementwise.h"
#include "ops/eval.h"
#include "ops/gathering.h"
#include "ops/generation.h"
#include "ops/movement.h"
#include "ops/shaping.h"

namespace lamina::tensorflow {

ValueId Call::ints_constant(const Ints& values) {
  return constant(Tensor::of<std::int64_t>({std::ssize(values)}, values));
}

ValueId Call::int_constant(std::int64_t value) { return constant(Tensor::scalar<std::int64_t>(value)); }

ValueId Call::number(double value, ElementType type) { return constant(from_doubles(type, {}, {value})); }

ValueId Call::convert(ValueId v, ElementType type) {
  if (element(v) == type) return v;
  if (const auto* t = graph().constant(v); t && t->size() <= 4096)
    return constant(lamina::convert(t->to_aligned(), type));
  return add(Convert{type}, {v});
}

ValueId Call::reshape(ValueId v, const Ints& pattern) {
  if (shape(v).known() && shape(v).sizes() == pattern) return v;
  const bool all_known = std::all_of(pattern.begin(), pattern.end(), [](auto d) { return d > 0; });
  if (const auto* t = graph().constant(v); t && all_known && element_count(pattern) == t->size())
    return constant(t->reshaped(pattern));
  return add(Reshape{}, {v, ints_constant(pattern)});
}

ValueId Call::unsqueeze(ValueId v, const Ints& axes) {
  return axes.empty() ? v : add(Unsqueeze{}, {v, ints_constant(axes)});
}

ValueId Call::squeeze(ValueId v, const Ints& axes) {
  return axes.empty() ? v : add(Squeeze{}, {v, ints_constant(axes)});
}

ValueId Call::transpose(ValueId v, const Ints& order) { return add(Transpose{}, {v, ints_constant(order)}); }

ValueId Call::concat(Values parts, std::int64_t axis) {
  return parts.size() == 1 ? parts[0] : add(Concat{axis}, std::move(parts));
}

ValueId Call::shape_of(ValueId v) { return add(ShapeOf{}, {v}); }

ValueId Call::pick(ValueId v, std::int64_t axis, std::int64_t index) {
  return add(Gather{}, {v, int_constant(index), int_constant(axis)});
}

ValueId Call::part(ValueId v, std::int64_t start, std::int64_t stop) {
  return add(Slice{},
             {v, ints_constant({start}), ints_constant({stop}), ints_constant({1}), ints_constant({0})});
}

ValueId Call::all_axes(ValueId v) {
  if (const auto r = rank(v)) {
    Ints axes;
    for (std::size_t a = 0; a < *r; ++a) axes.push_back(static_cast<std::int64_t>(a));
    return ints_constant(axes);
  }
  return add(Range{ElementType::i64}, {int_constant(0), to_scalar(shape_of(shape_of(v))), int_constant(1)});
}

ValueId Call::to_scalar(ValueId v) {
  if (rank(v) == std::size_t{0}) return v;
  if (const auto* t = graph().constant(v); t && t->size() == 1) return constant(t->reshaped({}));
  return add(Reshape{}, {v, constant(Tensor(ElementType::i64, {0}))});
}

ValueId Call::to_vector(ValueId v) { return rank(v) == std::size_t{1} ? v : reshape(v, {-1}); }

ValueId Call::filled(ValueId value, ValueId shape) { return add(Broadcast{}, {value, shape}); }

}  // namespace lamina::tensorflow
