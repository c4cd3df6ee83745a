#include "formats/onnx/build.h"

#include <algorithm>
#include <numeric>

#include "formats/onnx/importer.h"
#include "ops/check_sizes.h"
#include "ops/elementwise.h"
#include "ops/eval.h"
#include "ops/gathering.h"
#include "ops/generation.h"
#include "ops/movement.h"
#include "ops/quantization.h"
#include "ops/reduction.h"
#include "ops/shaping.h"

namespace lamina::onnx {
ValueId add(Call& c, ValueId a, ValueId b) { return c.add(Add{}, {a, b}); }
ValueId subtract(Call& c, ValueId a, ValueId b) { return c.add(Subtract{}, {a, b}); }
ValueId multiply(Call& c, ValueId a, ValueId b) { return c.add(Multiply{}, {a, b}); }
ValueId divide(Call& c, ValueId a, ValueId b) { return c.add(Divide{false}, {a, b}); }

ValueId axis_at_run_time(Call& c, std::int64_t axis, ValueId axes) {
  const auto all = c.add(Range{ElementType::i64}, {c.int_constant(0), axes, c.int_constant(1)});
  return c.add(Gather{0, OutOfRange::error}, {all, c.ints_constant({axis}), c.int_constant(0)});
}

ValueId front_size(Call& c, ValueId x, ValueId axis) {
  ReduceProd product;
  product.keep_dims = true;
  const auto zero = c.ints_constant({0}), one = c.ints_constant({1});
  return c.add(product, {c.add(Slice{}, {c.shape_of(x), zero, axis, one, zero}), zero});
}

ValueId checked_lengths(Call& c, ValueId lengths) {
  if (const auto known = c.known_ints(lengths)) {
    for (auto length : *known)
      if (length < 0) c.fail("split has {}, wanted 0 or more", length);
    return lengths;
  }
  const auto sizes = dims_of_value(c.graph(), lengths);
  if (sizes && std::none_of(sizes->begin(), sizes->end(), [](const Dim& d) { return d == Dim(); }))
    return lengths;
  return c.add_all(CheckSizes{SizesRule::any, "split"}, {lengths}, 2)[0];
}

ValueId cast(Call& c, ValueId v, ElementType type) {
  const bool saturates = c.flag("saturate", true);
  // Numbers beyond packed integers wrap, as ONNX's own reference has it.
  if (is_integer(type) && bits_of(type) < 8 && is_float(c.known_element(v)))
    v = c.convert(v, ElementType::i32);
  if (!is_small_float(type)) return c.add(Convert{type}, {v});
  if (type != ElementType::f8e8m0) {
    if (saturates) return c.add(Convert{type}, {v});
    return c.add(ConvertSmallFloat{.destination_type = type, .saturate = false}, {v});
  }
  const auto mode = c.s("round_mode", "up");
  for (std::size_t i = 0; i < enum_names<PowerRounding>.size(); ++i)
    if (enum_names<PowerRounding>[i] == mode)
      return c.add(ConvertSmallFloat{type, saturates, static_cast<PowerRounding>(i)}, {v});
  c.fail("round_mode is \"{}\", wanted up, down or nearest", mode);
}

void require_same_type(const Call& c, std::size_t zero_point, std::size_t numbers) {
  if (!c.has(zero_point)) return;
  const auto type = c.element(c.in(zero_point)), wanted = c.element(c.in(numbers));
  if (type != wanted && type != ElementType::undefined && wanted != ElementType::undefined)
    c.fail("the zero point (input {}) is {}, wanted {} as input {} has", zero_point, name_of(type),
           name_of(wanted), numbers);
}

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

}  // namespace lamina::onnx
