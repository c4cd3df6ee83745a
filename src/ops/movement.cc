#include "ops/movement.h"

#include <algorithm>
#include <cstring>

#include "base/cancellation.h"
#include "graph/op_model.h"
#include "graph/permute.h"
#include "graph/shape_value.h"
#include "ops/operators.h"
#include "ops/packed.h"
#include "ops/require.h"
#include "ops/walk.h"

namespace lamina {
namespace {

/// A tensor seen as [outer, axis, inner], in bytes.
struct Runs {
  std::int64_t outer = 1, inner = 1;
  Runs(const Dims& dims, std::size_t axis, ElementType type)
      : inner(static_cast<std::int64_t>(element_bytes(type))) {
    for (std::size_t i = 0; i < axis; ++i) outer *= dims[i];
    for (std::size_t i = axis + 1; i < dims.size(); ++i) inner *= dims[i];
  }
};

/// Copies `size` indices of an axis from in (which has in_size) at in_at to out (out_size) at out_at.
void copy_part(const Runs& runs, std::byte* out, std::int64_t out_size, std::int64_t out_at,
               const std::byte* in, std::int64_t in_size, std::int64_t in_at, std::int64_t size) {
  if (size * runs.inner == 0) return;
  StopPoints points(1 << 19);
  for (std::int64_t o = 0; o < runs.outer; points(size * runs.inner + 64), ++o)
    std::memcpy(out + (o * out_size + out_at) * runs.inner, in + (o * in_size + in_at) * runs.inner,
                static_cast<std::size_t>(size * runs.inner));
}

/// The axis input of Split and VariadicSplit, when it is known.
std::optional<std::size_t> axis_input(const InferContext& c, std::size_t rank) {
  const Dim length = require_list(c, 1, "axis");
  c.require(length.fits(1), "axis has {} elements, wanted 1", to_string(length));
  const auto axis = c.ints(1);
  if (!axis) return std::nullopt;
  return normalize_axis(axis->at(0), rank, "axis");
}

void evaluate_split(EvalContext& c) {
  if (moved_unpacked(c)) return;
  const Dims& x = c.dims(0);
  const auto axis = normalize_axis(c.ints(1).at(0), x.size(), "axis");
  const Runs runs(x, axis, c.out_element(0));
  std::int64_t at = 0;
  for (std::size_t i = 0; i < c.outputs(); ++i) {
    const auto size = c.out_dims(i)[axis];
    copy_part(runs, c.out(i).raw(), size, 0, c.in(0).raw(), x[axis], at, size);
    at += size;
  }
}

}  // namespace

void Concat::infer(InferContext& c) const {
  auto element = ElementType::undefined;
  std::size_t ranked = c.inputs();
  for (std::size_t i = 0; i < c.inputs(); ++i) {
    const auto e = c.element(i);
    if (element == ElementType::undefined) element = e;
    c.require(e == element || e == ElementType::undefined, "input {} is {}, wanted {} like those before", i,
              name_of(e), name_of(element));
    if (ranked == c.inputs() && c.shape(i).ranked()) ranked = i;
  }
  if (ranked == c.inputs()) return c.set(0, element, Shape());
  Shape out = c.shape(ranked);
  const auto a = normalize_axis(axis, out.rank(), "axis");
  Dim sum = 0;
  for (std::size_t i = 0; i < c.inputs(); ++i) {
    Shape part = c.shape(i);
    if (!part.ranked()) {
      sum = sum + Dim();
      continue;
    }
    c.require(part.rank() == out.rank(), "input {} has shape {}, wanted rank {}", i, to_string(part),
              out.rank());
    sum = sum + part[a];
    part[a] = out[a];
    auto both = merge(out, part);
    c.require(both.has_value(), "input {} has shape {}, which differs from {} in more than axis {}", i,
              to_string(c.shape(i)), to_string(out), a);
    out = std::move(*both);
  }
  out[a] = sum;
  c.set(0, element, std::move(out));
}

void Concat::evaluate(EvalContext& c) const {
  if (moved_unpacked(c)) return;
  const Dims& out = c.out_dims();
  const auto a = normalize_axis(axis, out.size(), "axis");
  const Runs runs(out, a, c.out_element(0));
  std::int64_t at = 0;
  for (std::size_t i = 0; i < c.inputs(); ++i) {
    const auto size = c.dims(i)[a];
    copy_part(runs, c.out().raw(), out[a], at, c.in(i).raw(), size, 0, size);
    at += size;
  }
}

void Split::infer(InferContext& c) const {
  c.require(num_splits >= 1 && static_cast<std::uint64_t>(num_splits) == c.outputs(),
            "num_splits is {} with {} outputs", num_splits, c.outputs());
  Shape out = c.shape(0);
  if (out.ranked()) {
    if (const auto axis = axis_input(c, out.rank())) {
      Dim& d = out[*axis];
      c.require(!d.known() || d.size() % num_splits == 0, "axis {} of {} does not split into {} equal parts",
                *axis, to_string(c.shape(0)), num_splits);
      d = floor_div(d, num_splits);
    } else {
      out = Shape::of_rank(out.rank());
    }
  }
  for (std::size_t i = 0; i < c.outputs(); ++i) c.set(i, c.element(0), out);
}

void Split::evaluate(EvalContext& c) const { evaluate_split(c); }

void VariadicSplit::infer(InferContext& c) const {
  const Shape& x = c.shape(0);
  const Dim count = require_list(c, 2, "lengths");
  c.require(count.fits(static_cast<std::int64_t>(c.outputs())),
            "lengths has {} elements, the node {} outputs", to_string(count), c.outputs());
  const auto axis = x.ranked() ? axis_input(c, x.rank()) : std::nullopt;
  if (!axis) {
    for (std::size_t i = 0; i < c.outputs(); ++i)
      c.set(i, c.element(0), x.ranked() ? Shape::of_rank(x.rank()) : Shape());
    return;
  }
  std::vector<Dim> lengths(c.outputs());
  if (const auto given = c.dims(2)) lengths = *given;
  Dim sum = 0;
  std::optional<std::size_t> open;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i].is(-1)) {
      c.require(!open, "lengths has more than one -1");
      open = i;
    } else {
      c.require(lengths[i].low() >= 0, "lengths has {}, wanted -1 or more", to_string(lengths[i]));
      sum = sum + lengths[i];
    }
  }
  c.require(open ? sum.low() <= x[*axis].high() : sum.fits(x[*axis]),
            "lengths add up to {}, axis {} of {} has {}", to_string(sum), *axis, to_string(x),
            to_string(x[*axis]));
  if (open) lengths[*open] = x[*axis] - sum;
  for (std::size_t i = 0; i < c.outputs(); ++i) {
    Shape out = x;
    out[*axis] = lengths[i];
    c.set(i, c.element(0), std::move(out));
  }
}

void VariadicSplit::evaluate(EvalContext& c) const { evaluate_split(c); }

void ReverseSequence::infer(InferContext& c) const {
  const Shape& x = c.shape(0);
  const Shape& lengths = c.shape(1);
  c.require(!lengths.ranked() || lengths.rank() == 1, "lengths has shape {}, wanted rank 1",
            to_string(lengths));
  if (x.ranked()) {
    const auto batch = normalize_axis(batch_axis, x.rank(), "batch_axis");
    c.require(batch != normalize_axis(seq_axis, x.rank(), "seq_axis"), "batch_axis and seq_axis are both {}",
              batch);
    if (lengths.ranked())
      c.require(lengths[0].fits(x[batch]), "lengths has {} elements, the batch {}", to_string(lengths[0]),
                to_string(x[batch]));
  }
  c.set(0, c.type(0));
}

void ReverseSequence::evaluate(EvalContext& c) const {
  if (moved_unpacked(c)) return;
  const Dims& dims = c.dims(0);
  const auto batch = normalize_axis(batch_axis, dims.size(), "batch_axis");
  const auto seq = normalize_axis(seq_axis, dims.size(), "seq_axis");
  const Ints lengths = c.ints(1);
  const auto strides = dense_strides(dims);
  const auto bytes = static_cast<std::int64_t>(element_bytes(c.out_element(0)));
  const auto count = static_cast<std::int64_t>(c.in(0).size());
  StopPoints points;
  for (std::int64_t i = 0; i < count; ++i) {
    points(8);
    const auto b = i / strides[batch] % dims[batch], s = i / strides[seq] % dims[seq];
    const auto length = std::clamp<std::int64_t>(lengths[static_cast<std::size_t>(b)], 0, dims[seq]);
    const auto from = s < length ? i + (length - 1 - 2 * s) * strides[seq] : i;
    std::memcpy(c.out().raw() + i * bytes, c.in(0).raw() + from * bytes, static_cast<std::size_t>(bytes));
  }
}

void Identity::infer(InferContext& c) const { c.set(0, c.type(0)); }
void Identity::evaluate(EvalContext& c) const { c.set(0, c.in(0)); }

namespace {

Verdict permute_split(PermuteContext& c) {
  const auto axis = axis_input(c.node(), c.rank());
  if (!axis) return not_known("axis");
  c.replace(1, Tensor::scalar(c.axis(static_cast<std::int64_t>(*axis))));
  return Verdict::yes();
}

}  // namespace

Verdict Split::permute(PermuteContext& c) const { return permute_split(c); }
Verdict VariadicSplit::permute(PermuteContext& c) const { return permute_split(c); }

Verdict Concat::permute(PermuteContext& c) const {
  for (std::size_t i = 0; i < c.node().inputs(); ++i) {
    if (!c.node().shape(i).ranked()) return Verdict::no("the rank of its input {} is not known", i);
    if (auto v = c.follow(i); !v) return v;
  }
  return c.move_axis(*this);
}

Verdict Identity::permute(PermuteContext&) const { return Verdict::yes(); }

ShapeValue Concat::shape_value(ShapeValueContext& c) const {
  std::vector<Dim> out;
  for (std::size_t i = 0; i < c.node().inputs.size(); ++i) {
    const auto part = c.input(i);
    if (!part) return std::nullopt;
    out.insert(out.end(), part->begin(), part->end());
  }
  return out;
}

void register_movement(Registry& r) {
  r.add<Concat>();
  r.add<Identity>();
  r.add<Pad>();
  r.add<ReverseSequence>();
  r.add<Roll>();
  r.add<Split>();
  r.add<VariadicSplit>();
}

}  // namespace lamina
