#include "ops/shaping.h"

#include <algorithm>
#include <limits>

#include "graph/op_model.h"
#include "graph/permute.h"
#include "graph/shape_value.h"
#include "ops/operators.h"
#include "ops/packed.h"
#include "ops/require.h"
#include "ops/walk.h"

namespace lamina {
namespace {

Shape shape_of_length(const Dim& length) {
  return length.known() && length.size() >= 0 && length.size() <= 1024
             ? Shape::of_rank(static_cast<std::size_t>(length.size()))
             : Shape();
}

/// What remains of `all` after the dimensions of `taken`, as one dimension. Provably equal ones cancel, so
/// that [N,C,4,4] without [N,-1] leaves C * 16 whatever N is, and [5,0] without [-1,0] leaves 5. 0 where
/// there are no elements and no size follows.
Dim rest_of(const InferContext& c, std::vector<Dim> all, const std::vector<Dim>& taken) {
  const bool empty = std::ranges::any_of(all, [](const Dim& d) { return d.is(0); });
  const bool maybe_empty = std::ranges::any_of(all, [](const Dim& d) { return d.fits(0); });
  std::vector<Dim> left;
  for (const auto& t : taken) {
    const auto same = std::find_if(all.begin(), all.end(), [&](const Dim& d) { return d.same(t); });
    if (same != all.end()) {
      all.erase(same);
    } else {
      left.push_back(t);
    }
  }
  std::int64_t above = 1, below = 1;
  Dim unknown = 1;
  for (const auto& d : all) {
    if (d.known()) {
      above = saturated_mul(above, d.size());
    } else {
      unknown = unknown * d;
    }
  }
  for (const auto& d : left) {
    if (!d.known()) return {};
    below = saturated_mul(below, d.size());
  }
  if (below == 0) {
    c.require(!unknown.known() || maybe_empty, "{} elements do not fit a shape with a dimension of 0", above);
    return empty && unknown.known() ? Dim(above) : Dim();
  }
  if (above % below == 0) return unknown * Dim(above / below);
  if (empty) return Dim(0);
  if (unknown.known() && maybe_empty) return {};  // a size that cancels may be 0: then it fits
  c.require(!unknown.known(), "{} elements are not a multiple of {}", above, below);
  return floor_div(unknown * Dim(above), below);
}

constexpr auto kNone = std::numeric_limits<std::size_t>::max();

/// The dimension to be found: the -1, or else the only one nothing is known of; or kNone.
std::size_t open_dimension(const std::vector<Dim>& dims) {
  const auto marked = std::ranges::find_if(dims, [](const Dim& d) { return d.is(-1); });
  if (marked != dims.end()) return static_cast<std::size_t>(marked - dims.begin());
  std::size_t open = kNone;
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (!dims[i].known() && dims[i].name().empty()) {
      if (open != kNone) return kNone;
      open = i;
    }
  return open;
}

}  // namespace

void Reshape::infer(InferContext& c) const {
  const auto element = c.element(0);
  const Shape& x = c.shape(0);
  const Dim length = require_list(c, 1, "pattern");
  const auto pattern = c.dims(1);
  if (!pattern) {
    c.require(!length.is(0) || x.count().fits(1), "{} has more than the one element of a scalar",
              to_string(x));
    return c.set(0, element, shape_of_length(length));
  }
  std::vector<Dim> out, others;
  bool marked = false;
  for (std::size_t i = 0; i < pattern->size(); ++i) {
    Dim d = (*pattern)[i];
    if (d.is(-1)) {
      c.require(!marked, "pattern has more than one -1");
      marked = true;
    } else if (special_zero && d.is(0)) {
      c.require(!x.ranked() || i < x.rank(), "pattern keeps dimension {} of an input of rank {}", i,
                x.rank());
      d = x.ranked() ? x[i] : Dim();
    } else {
      c.require(d.low() >= 0, "pattern has the dimension {}, wanted -1 or more", to_string(d));
    }
    out.push_back(d);
  }
  const auto open = open_dimension(out);
  if (x.ranked() && open != kNone) {
    for (std::size_t i = 0; i < out.size(); ++i)
      if (i != open) others.push_back(out[i]);
    // Beside a 0 the pattern may have any size there, but -1 has to be found.
    const bool any = !marked && std::ranges::any_of(others, [](const Dim& d) { return d.is(0); });
    const Dim found = any ? Dim() : rest_of(c, x.dims(), others);
    const bool better = marked || found.known() || !found.name().empty();
    if (better) out[open] = found;
  } else if (open != kNone && marked) {
    out[open] = Dim();
  }
  Shape shape(std::move(out));
  if (x.ranked()) {
    const Dim from = x.count(), to = shape.count();
    c.require(from.fits(to), "{} has {} elements, pattern {} wants {}", to_string(x), to_string(from),
              to_string(shape), to_string(to));
  }
  c.set(0, element, std::move(shape));
}

void Reshape::evaluate(EvalContext& c) const { c.set(0, c.in(0).reshaped(c.out_dims())); }

void Squeeze::infer(InferContext& c) const {
  const auto element = c.element(0);
  const Shape& x = c.shape(0);
  if (c.has(1)) require_list(c, 1, "axes");
  const auto axes = c.has(1) ? c.ints(1) : Ints{};
  if (!x.ranked() || !axes) return c.set(0, element, Shape());
  std::vector<bool> listed(x.rank(), axes->empty());
  for (auto axis : *axes) listed[normalize_axis(axis, x.rank(), "axes")] = true;
  const bool optional = axes->empty() || allow_axis_skip;
  std::vector<Dim> out;
  for (std::size_t i = 0; i < x.rank(); ++i) {
    if (listed[i] && optional && !x[i].known() && x[i].fits(1)) return c.set(0, element, Shape());
    c.require(!listed[i] || optional || x[i].fits(1), "axis {} of {} is squeezed, wanted a dimension of 1", i,
              to_string(x));
    if (!listed[i] || !x[i].fits(1)) out.push_back(x[i]);
  }
  c.set(0, element, Shape(std::move(out)));
}

void Squeeze::evaluate(EvalContext& c) const { c.set(0, c.in(0).reshaped(c.out_dims())); }

void Unsqueeze::infer(InferContext& c) const {
  const auto element = c.element(0);
  const Shape& x = c.shape(0);
  const Dim length = require_list(c, 1, "axes");
  if (!x.ranked() || !length.known()) return c.set(0, element, Shape());
  const auto axes = c.ints(1);
  const Dim rank = length + Dim(static_cast<std::int64_t>(x.rank()));
  if (!axes) return c.set(0, element, shape_of_length(rank));
  std::vector<bool> fresh(static_cast<std::size_t>(rank.size()));
  for (auto axis : distinct_axes(*axes, fresh.size(), "axes")) fresh[axis] = true;
  std::vector<Dim> out;
  for (std::size_t i = 0, from = 0; i < fresh.size(); ++i) out.push_back(fresh[i] ? Dim(1) : x[from++]);
  c.set(0, element, Shape(std::move(out)));
}

void Unsqueeze::evaluate(EvalContext& c) const { c.set(0, c.in(0).reshaped(c.out_dims())); }

namespace {

/// Each of 0, 1, ... once.
void require_permutation(const InferContext& c, const Ints& order) {
  std::vector<bool> seen(order.size(), false);
  for (auto axis : order) {
    c.require(axis >= 0 && axis < std::ssize(order), "order has {}, wanted 0 to {}", axis,
              std::ssize(order) - 1);
    c.require(!seen[static_cast<std::size_t>(axis)], "order has {} twice", axis);
    seen[static_cast<std::size_t>(axis)] = true;
  }
}

}  // namespace

Ints transpose_order(Ints given, std::size_t rank) {
  if (given.empty())
    for (std::size_t i = rank; i-- > 0;) given.push_back(static_cast<std::int64_t>(i));
  return given;
}

void Transpose::infer(InferContext& c) const {
  const auto element = c.element(0);
  const Shape& x = c.shape(0);
  const Dim length = c.has(1) ? require_list(c, 1, "order") : Dim(0);
  const auto given = c.has(1) ? c.ints(1) : Ints();
  if (given) require_permutation(c, *given);
  if (!x.ranked()) return c.set(0, element, length.is(0) ? Shape() : shape_of_length(length));
  const auto rank = static_cast<std::int64_t>(x.rank());
  c.require(length.fits(0) || length.fits(rank), "order has {} elements, the input has rank {}",
            to_string(length), rank);
  if (!given && !length.is(0)) return c.set(0, element, Shape::of_rank(x.rank()));
  std::vector<Dim> out;
  for (auto axis : transpose_order(given.value_or(Ints()), x.rank()))
    out.push_back(x[static_cast<std::size_t>(axis)]);
  c.set(0, element, Shape(std::move(out)));
}

void Transpose::evaluate(EvalContext& c) const {
  if (moved_unpacked(c)) return;
  const auto order = transpose_order(c.has(1) ? c.ints(1) : Ints(), c.dims(0).size());
  c.set(0, transposed(c.in(0), c.dims(0), {order.begin(), order.end()}, c.out_dims()));
}

void ShapeOf::infer(InferContext& c) const {
  c.require(output_type == ElementType::i64 || output_type == ElementType::i32,
            "output_type is {}, wanted i64 or i32", name_of(output_type));
  const Shape& x = c.shape(0);
  c.set(0, output_type, Shape{x.ranked() ? Dim(static_cast<std::int64_t>(x.rank())) : Dim()});
}

void ShapeOf::evaluate(EvalContext& c) const { c.store(0, c.dims(0)); }

namespace {

/// Output of numpy and explicit modes at one place: x's dimension repeats to the target's.
Dim broadcast_dim(const InferContext& c, const Dim& x, const Dim& target) {
  c.require(x.fits(1) || x.fits(target), "a dimension of {} does not broadcast to {}", to_string(x),
            to_string(target));
  if (target.known() || x.is(1) || x.fits(1)) return target;
  return x;  // not 1, so the target is the same
}

Shape broadcast_explicit(const InferContext& c, const Shape& x, const std::vector<Dim>& target) {
  c.require(c.has(2), "mode explicit has no input axes");
  require_list(c, 2, "axes");
  Shape out(target);
  const auto given = c.ints(2);
  if (!given) return out;
  const auto axes = distinct_axes(*given, target.size(), "axes");
  c.require(std::is_sorted(axes.begin(), axes.end()), "axes {} do not grow: a Broadcast does not transpose",
            to_string(*given));
  if (!x.ranked()) return out;
  c.require(axes.size() == x.rank(), "axes has {} elements, the input has rank {}", axes.size(), x.rank());
  for (std::size_t i = 0; i < axes.size(); ++i) out[axes[i]] = broadcast_dim(c, x[i], target[axes[i]]);
  return out;
}

Shape broadcast_numpy(const InferContext& c, const Shape& x, const std::vector<Dim>& target) {
  Shape out(target);
  if (!x.ranked()) return out;
  c.require(x.rank() <= target.size(), "{} does not broadcast to {}", to_string(x), to_string(out));
  const auto skipped = target.size() - x.rank();
  for (std::size_t i = 0; i < x.rank(); ++i) out[skipped + i] = broadcast_dim(c, x[i], target[skipped + i]);
  return out;
}

}  // namespace

void Broadcast::infer(InferContext& c) const {
  const auto element = c.element(0);
  const Shape& x = c.shape(0);
  const Dim length = require_list(c, 1, "target shape");
  const auto target = c.dims(1);
  if (!target) {
    Shape out = shape_of_length(length);
    if (mode == BroadcastMode::bidirectional) {
      const bool ranked = out.ranked() && x.ranked();
      out = ranked ? Shape::of_rank(std::max(out.rank(), x.rank())) : Shape();
    }
    return c.set(0, element, std::move(out));
  }
  for (const auto& d : *target)
    c.require(d.low() >= 0, "target shape has the dimension {}, wanted 0 or more", to_string(d));
  if (mode == BroadcastMode::explicit_) return c.set(0, element, broadcast_explicit(c, x, *target));
  if (mode == BroadcastMode::numpy) return c.set(0, element, broadcast_numpy(c, x, *target));
  auto out = broadcast(x, Shape(*target));
  c.require(out.has_value(), "{} and {} do not broadcast", to_string(x), to_string(Shape(*target)));
  c.set(0, element, std::move(*out));
}

void Broadcast::evaluate(EvalContext& c) const {
  if (moved_unpacked(c)) return;
  const Dims &from = c.dims(0), &to = c.out_dims();
  Ints strides(to.size(), 0);
  if (mode == BroadcastMode::explicit_) {
    const auto dense = dense_strides(from);
    const Ints axes = c.ints(2);
    for (std::size_t i = 0; i < from.size(); ++i)
      if (from[i] != 1) strides[normalize_axis(axes[i], to.size(), "axes")] = dense[i];
  } else {
    strides = broadcast_strides(from, to);
  }
  copy_strided(c.out().raw(), to, c.in(0).raw(), 0, strides, element_bytes(c.out_element(0)));
}

void Tile::infer(InferContext& c) const {
  const auto element = c.element(0);
  const Shape& x = c.shape(0);
  const Dim length = require_list(c, 1, "repeats");
  const auto repeats = c.dims(1);
  if (!x.ranked()) return c.set(0, element, Shape());
  if (!repeats) {
    const Dim rank = std::max(length.low(), static_cast<std::int64_t>(x.rank()));
    return c.set(0, element, length.known() ? shape_of_length(rank) : Shape());
  }
  const auto rank = std::max(x.rank(), repeats->size());
  std::vector<Dim> out(rank, 1);
  for (std::size_t i = 0; i < x.rank(); ++i) out[rank - x.rank() + i] = x[i];
  for (std::size_t i = 0; i < repeats->size(); ++i) {
    const Dim& r = (*repeats)[i];
    c.require(r.low() >= 0, "repeats has {}, wanted 0 or more", to_string(r));
    auto& d = out[rank - repeats->size() + i];
    d = d * r;
  }
  c.set(0, element, Shape(std::move(out)));
}

void Tile::evaluate(EvalContext& c) const {
  if (moved_unpacked(c)) return;
  const Dims& out = c.out_dims();
  Dims from(out.size(), 1);
  std::copy_backward(c.dims(0).begin(), c.dims(0).end(), from.end());
  // Every axis is seen as [repeats, size] with a stride of 0 for the repeats.
  const auto dense = dense_strides(from);
  Dims walked;
  Ints strides;
  for (std::size_t i = 0; i < out.size(); ++i) {
    walked.insert(walked.end(), {out[i] / from[i], from[i]});
    strides.insert(strides.end(), {0, dense[i]});
  }
  copy_strided(c.out().raw(), walked, c.in(0).raw(), 0, strides, element_bytes(c.out_element(0)));
}

Verdict Tile::permute(PermuteContext& c) const {
  auto repeats = c.node().ints(1);
  if (!repeats) return not_known("repeats");
  if (repeats->size() > c.rank()) return Verdict::no("it adds axes");
  repeats->insert(repeats->begin(), c.rank() - repeats->size(), 1);
  c.replace(1, c.per_axis(*repeats));
  return Verdict::yes();
}

ShapeValue ShapeOf::shape_value(ShapeValueContext& c) const {
  const auto& shape = c.shape(0);
  if (!shape.ranked()) return std::nullopt;
  return shape.dims();
}

void register_shaping(Registry& r) {
  r.add<BatchToSpace>();
  r.add<Broadcast>();
  r.add<DepthToSpace>();
  r.add<Reshape>();
  r.add<ShapeOf>();
  r.add<ShuffleChannels>();
  r.add<SpaceToBatch>();
  r.add<SpaceToDepth>();
  r.add<Squeeze>();
  r.add<Tile>();
  r.add<Transpose>();
  r.add<Unsqueeze>();
}

}  // namespace lamina
