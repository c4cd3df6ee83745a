/// Slice and StridedSlice of movement.h.
#include <algorithm>
#include <cstring>

#include "graph/op_model.h"
#include "graph/permute.h"
#include "graph/shape_value.h"
#include "ops/movement.h"
#include "ops/operators.h"
#include "ops/packed.h"
#include "ops/require.h"
#include "ops/slicing.h"
#include "ops/walk.h"

namespace lamina {
namespace {

/// Copies out of x: axis i takes count[i] elements from first[i] on, step[i] apart.
void copy_slice(EvalContext& c, const Ints& first, const Ints& count, const Ints& step) {
  auto strides = dense_strides(c.dims(0));
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < strides.size(); ++i) {
    offset += first[i] * strides[i];
    strides[i] = count[i] > 1 ? strides[i] * step[i] : 0;
  }
  copy_strided(c.out().raw(), count, c.in(0).raw(), offset, strides, element_bytes(c.out_element(0)));
}

const Dim* bound(const std::optional<std::vector<Dim>>& bounds, std::size_t i, const Dim& unknown) {
  return bounds ? &(*bounds)[i] : &unknown;
}

/// Any value, negative ones included.
const Dim& any_bound() {
  static const Dim any(INT64_MIN, INT64_MAX);
  return any;
}

std::optional<std::int64_t> step_at(const InferContext& c, const std::optional<Ints>& steps, std::size_t i) {
  if (!steps) return std::nullopt;
  c.require((*steps)[i] != 0, "step {} is 0", i);
  return (*steps)[i];
}

/// What start, stop, step and axes, the inputs from `first` on, take of input 0.
Shape taken(const InferContext& c, std::size_t first) {
  const Shape& x = c.shape(0);
  const Dim count = require_list(c, first, "start");
  constexpr std::array<std::string_view, 4> names{"start", "stop", "step", "axes"};
  const bool has_axes = c.has(first + 3);
  for (std::size_t i = 1; i < (has_axes ? 4 : 3); ++i) {
    const Dim length = require_list(c, first + i, names[i]);
    c.require(length.fits(count), "{} has {} elements, start has {}", names[i], to_string(length),
              to_string(count));
  }
  if (!x.ranked()) return Shape();
  c.require(count.low() <= static_cast<std::int64_t>(x.rank()),
            "start has {} elements, the input has rank {}", to_string(count), x.rank());
  auto axes = has_axes ? c.ints(first + 3) : std::nullopt;
  if (!has_axes && count.known()) {
    axes.emplace();
    for (std::int64_t i = 0; i < count.size(); ++i) axes->push_back(i);
  }
  if (!axes || !count.known()) return Shape::of_rank(x.rank());
  const auto start = c.dims(first), stop = c.dims(first + 1);
  const auto steps = c.ints(first + 2);
  Shape out = x;
  const auto listed = distinct_axes(*axes, x.rank(), "axes");
  for (std::size_t i = 0; i < listed.size(); ++i)
    out[listed[i]] =
        sliced(x[listed[i]], bound(start, i, any_bound()), bound(stop, i, any_bound()), step_at(c, steps, i));
  return out;
}

/// A slice with all bounds known: axis i has count[i] elements from first[i] on, step[i] apart.
struct Taken {
  Ints first, count, step;
};

Taken taken(const EvalContext& c, std::size_t from) {
  const Dims& x = c.dims(0);
  const Ints start = c.ints(from), stop = c.ints(from + 1), steps = c.ints(from + 2);
  Taken t{Ints(x.size(), 0), x, Ints(x.size(), 1)};
  for (std::size_t i = 0; i < start.size(); ++i) {
    const auto given = c.has(from + 3) ? c.ints(from + 3)[i] : static_cast<std::int64_t>(i);
    const auto a = normalize_axis(given, x.size(), "axes");
    const auto range = slice_range(x[a], start[i], stop[i], steps[i]);
    t.first[a] = range.first;
    t.count[a] = range.count;
    t.step[a] = steps[i];
  }
  return t;
}

}  // namespace

void Slice::infer(InferContext& c) const { c.set(0, c.element(0), taken(c, 1)); }

void Slice::evaluate(EvalContext& c) const {
  if (moved_unpacked(c)) return;
  const auto t = taken(c, 1);
  copy_slice(c, t.first, t.count, t.step);
}

void SliceScatter::infer(InferContext& c) const {
  require_same_element(c, 0, 1, "updates");
  require_shape(c, 1, taken(c, 2), "updates");
  c.set(0, c.type(0));
}

void SliceScatter::evaluate(EvalContext& c) const {
  if (moved_unpacked(c)) return;
  const auto t = taken(c, 2);
  const auto bytes = static_cast<std::int64_t>(element_bytes(c.out_element(0)));
  std::memcpy(c.out().raw(), c.in(0).raw(), c.in(0).bytes());
  auto strides = dense_strides(c.dims(0));
  std::int64_t start = 0;
  for (std::size_t i = 0; i < strides.size(); ++i) {
    start += t.first[i] * strides[i];
    strides[i] = t.count[i] > 1 ? strides[i] * t.step[i] : 0;
  }
  const auto last = strides.empty() ? 0 : strides.back();
  for_each_row<1>(t.count, {strides}, [&](std::int64_t first, const auto& offsets, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i)
      std::memcpy(c.out().raw() + (start + offsets[0] + i * last) * bytes,
                  c.in(1).raw() + (first + i) * bytes, static_cast<std::size_t>(bytes));
  });
}

namespace {

enum class Part { whole, cut, take, insert };

/// What StridedSlice does, output dimension by output dimension (and for taken, dropped ones).
struct Step {
  Part part;
  std::size_t axis = 0;      // of the input, unless inserted
  std::size_t position = 0;  // in begin, end and strides
};

/// The masks laid out over `positions` elements of begin and an input of `rank`.
std::vector<Step> layout(const InferContext* c, const StridedSlice& s, std::size_t positions,
                         std::size_t rank) {
  const auto set = [](const Ints& mask, std::size_t i) { return i < mask.size() && mask[i] != 0; };
  std::size_t used = 0, ellipses = 0;
  for (std::size_t i = 0; i < positions; ++i) {
    if (set(s.ellipsis_mask, i)) {
      ++ellipses;
    } else if (!set(s.new_axis_mask, i)) {
      ++used;
    }
  }
  if (c) {
    c->require(ellipses <= 1, "ellipsis_mask has {} ones, wanted at most 1", ellipses);
    c->require(used <= rank, "begin speaks of {} dimensions, the input has {}", used, rank);
  }
  std::vector<Step> steps;
  std::size_t axis = 0;
  for (std::size_t i = 0; i < positions; ++i) {
    if (set(s.ellipsis_mask, i)) {
      for (std::size_t k = used; k < rank; ++k) steps.push_back({Part::whole, axis++, i});
    } else if (set(s.new_axis_mask, i)) {
      steps.push_back({Part::insert, 0, i});
    } else {
      steps.push_back({set(s.shrink_axis_mask, i) ? Part::take : Part::cut, axis++, i});
    }
  }
  for (; axis < rank; ++axis) steps.push_back({Part::whole, axis, positions});
  return steps;
}

bool masked(const Ints& mask, std::size_t i) { return i < mask.size() && mask[i] != 0; }

}  // namespace

void StridedSlice::infer(InferContext& c) const {
  const auto element = c.element(0);
  const Shape& x = c.shape(0);
  const Dim count = require_list(c, 1, "begin"), end_count = require_list(c, 2, "end");
  c.require(count.fits(end_count), "end has {} elements, begin has {}", to_string(end_count),
            to_string(count));
  if (c.has(3)) {
    const Dim stride_count = require_list(c, 3, "strides");
    c.require(count.fits(stride_count), "strides has {} elements, begin has {}", to_string(stride_count),
              to_string(count));
  }
  if (!x.ranked() || !count.known()) return c.set(0, element, Shape());
  c.require(count.size() <= 4096, "begin has {} elements, wanted at most 4096", count.size());
  const auto positions = static_cast<std::size_t>(count.size());
  const auto begin = c.dims(1), end = c.dims(2);
  const auto strides = c.has(3) ? c.ints(3) : Ints(positions, 1);
  std::vector<Dim> out;
  for (const auto& s : layout(&c, *this, positions, x.rank())) {
    const Dim& d = s.part == Part::insert ? any_bound() : x[s.axis];
    switch (s.part) {
      case Part::insert:
        out.emplace_back(1);
        break;
      case Part::whole:
        out.push_back(d);
        break;
      case Part::cut: {
        const Dim *from = bound(begin, s.position, any_bound()), *to = bound(end, s.position, any_bound());
        out.push_back(sliced(d, masked(begin_mask, s.position) ? nullptr : from,
                             masked(end_mask, s.position) ? nullptr : to, step_at(c, strides, s.position)));
        break;
      }
      case Part::take: {
        const Dim& at = *bound(begin, s.position, any_bound());
        const bool inside = !at.known() || !d.known() || (at.size() < d.size() && at.size() >= -d.size());
        c.require(inside, "begin takes element {} of axis {}, which has {}", to_string(at), s.axis,
                  to_string(d));
        break;
      }
    }
  }
  c.set(0, element, Shape(std::move(out)));
}

void StridedSlice::evaluate(EvalContext& c) const {
  if (moved_unpacked(c)) return;
  const Dims& x = c.dims(0);
  const Ints begin = c.ints(1), end = c.ints(2), strides = c.has(3) ? c.ints(3) : Ints(begin.size(), 1);
  Ints first(x.size(), 0), count = x, step(x.size(), 1);
  for (const auto& s : layout(nullptr, *this, begin.size(), x.size())) {
    const auto p = s.position;
    if (s.part == Part::cut) {
      const auto range = slice_range(x[s.axis], masked(begin_mask, p) ? open_start(strides[p]) : begin[p],
                                     masked(end_mask, p) ? open_stop(strides[p]) : end[p], strides[p]);
      first[s.axis] = range.first;
      count[s.axis] = range.count;
      step[s.axis] = strides[p];
    } else if (s.part == Part::take) {
      first[s.axis] = begin[p] < 0 ? begin[p] + x[s.axis] : begin[p];
      count[s.axis] = 1;
    }
  }
  copy_slice(c, first, count, step);
}

/// A StridedSlice is a slice with a bound for every axis.
Verdict StridedSlice::permute(PermuteContext& c) const {
  auto begin = c.node().ints(1), end = c.node().ints(2);
  auto strides = c.node().has(3) ? c.node().ints(3) : Ints();
  if (!begin || !end || !strides) return not_known("bounds");
  const auto any = [](const Ints& mask) {
    return std::any_of(mask.begin(), mask.end(), [](auto m) { return m != 0; });
  };
  if (any(new_axis_mask)) return Verdict::no("it adds axes");
  if (any(ellipsis_mask)) return Verdict::no("it has an ellipsis");
  if (begin->size() > c.rank()) return Verdict::no("it has more bounds than there are axes");
  const auto given = begin->size();
  StridedSlice op;
  std::vector<bool> dropped(c.rank());
  Ints from(c.rank(), 1), to(c.rank(), 1), taken(c.rank(), 0);
  for (std::size_t i = 0; i < given; ++i) {
    from[i] = masked(begin_mask, i);
    to[i] = masked(end_mask, i);
    taken[i] = dropped[i] = masked(shrink_axis_mask, i);
  }
  op.begin_mask = c.per_axis(from);
  op.end_mask = c.per_axis(to);
  op.shrink_axis_mask = c.per_axis(taken);
  for (auto* list : {&*begin, &*end}) {
    list->resize(c.rank(), 0);
    c.replace(list == &*begin ? 1 : 2, c.per_axis(*list));
  }
  strides->resize(c.rank(), 1);
  c.replace(3, c.per_axis(*strides));
  c.set_op(op);
  if (any(taken)) c.drop_axes(dropped);
  return Verdict::yes();
}

Verdict Slice::permute(PermuteContext& c) const {
  if (c.node().has(4)) return c.move_axes_input(4);
  const Shape& start = c.node().shape(1);
  if (!start.known()) return not_known("axes");
  Ints axes;
  for (std::int64_t i = 0; i < start.count().size(); ++i) axes.push_back(c.axis(i));
  c.replace(4, axes);
  return Verdict::yes();
}

ShapeValue Slice::shape_value(ShapeValueContext& c) const {
  const auto data = c.input(0);
  if (!data || c.shape(0).rank() != 1) return std::nullopt;
  const auto start = c.bound(1), stop = c.bound(2), step = c.bound(3);
  if (!start || !stop || step != 1) return std::nullopt;
  const auto range = slice_range(static_cast<std::int64_t>(data->size()), *start, *stop, 1);
  return std::vector<Dim>(data->begin() + range.first, data->begin() + range.first + range.count);
}

void register_slice(Registry& r) {
  r.add<Slice>();
  r.add<SliceScatter>();
  r.add<StridedSlice>();
}

}  // namespace lamina
