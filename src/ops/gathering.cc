#include "ops/gathering.h"

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

std::vector<Dim> slice_of(const Shape& s, std::size_t from, std::size_t to) {
  return {s.dims().begin() + static_cast<std::ptrdiff_t>(from),
          s.dims().begin() + static_cast<std::ptrdiff_t>(to)};
}

void append(std::vector<Dim>& to, const std::vector<Dim>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

/// Batch axes of Gather and GatherND: not more than the rank, and equal in both inputs.
std::size_t checked_batch(const InferContext& c, std::int64_t batch_dims, std::size_t limit) {
  c.require(batch_dims >= 0 && batch_dims <= static_cast<std::int64_t>(limit),
            "batch_dims is {}, wanted 0..{}", batch_dims, limit);
  const auto batch = static_cast<std::size_t>(batch_dims);
  for (std::size_t i = 0; i < batch; ++i)
    c.require(c.shape(0)[i].fits(c.shape(1)[i]), "batch axis {} of data {} and indices {} differs", i,
              to_string(c.shape(0)), to_string(c.shape(1)));
  return batch;
}

/// Copies one run of elements after another.
class Mover {
 public:
  Mover(EvalContext& c, std::size_t input)
      : bytes_(static_cast<std::int64_t>(element_bytes(c.in(input).element_type()))),
        source_(c.in(input).raw()),
        target_(c.out().raw()) {}
  void copy(std::int64_t to, std::int64_t from, std::int64_t count) {
    if (count == 0) return;
    points_(count + 8);
    std::memcpy(target_ + to * bytes_, source_ + from * bytes_, static_cast<std::size_t>(count * bytes_));
  }

 private:
  std::int64_t bytes_;
  const std::byte* source_;
  std::byte* target_;
  StopPoints points_;
};

}  // namespace

void Gather::infer(InferContext& c) const {
  require_integer(c, 1, "indices");
  const auto axis_value = known_int(c, 2, "axis");
  const auto &data = c.shape(0), &indices = c.shape(1);
  if (!data.ranked() || !indices.ranked()) return c.set(0, c.element(0), Shape());
  const auto negative = batch_dims < 0 ? static_cast<std::int64_t>(indices.rank()) : 0;
  const auto batch = checked_batch(c, batch_dims + negative, std::min(data.rank(), indices.rank()));
  c.require(data.rank() > 0, "data is a scalar, wanted at least one axis");
  if (!axis_value) return c.set(0, c.element(0), Shape::of_rank(data.rank() + indices.rank() - 1 - batch));
  const auto axis = normalize_axis(*axis_value, data.rank(), "axis");
  c.require(batch <= axis, "batch_dims is {}, wanted at most the axis {}", batch, axis);
  auto out = slice_of(data, 0, axis);
  append(out, slice_of(indices, batch, indices.rank()));
  append(out, slice_of(data, axis + 1, data.rank()));
  c.set(0, c.element(0), std::move(out));
}

void Gather::evaluate(EvalContext& c) const {
  if (moved_unpacked(c)) return;
  const auto &data = c.dims(0), &shape = c.dims(1);
  const auto axis = normalize_axis(c.ints(2).at(0), data.size(), "axis");
  const auto batch = static_cast<std::size_t>(
      batch_dims < 0 ? batch_dims + static_cast<std::int64_t>(shape.size()) : batch_dims);
  const auto batches = volume(data, 0, batch), outer = volume(data, batch, axis), size = data[axis];
  const auto inner = volume(data, axis + 1, data.size()), count = volume(shape, batch, shape.size());
  const auto indices = c.ints(1);
  Mover mover(c, 0);
  std::int64_t to = 0;
  for (std::int64_t b = 0; b < batches; ++b)
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t i = 0; i < count; ++i, to += inner) {
        const auto given = indices[static_cast<std::size_t>(b * count + i)];
        if (out_of_range == OutOfRange::zeros && (given < -size || given >= size)) continue;
        mover.copy(to, ((b * outer + o) * size + checked_index(given, size)) * inner, inner);
      }
}

void GatherElements::infer(InferContext& c) const {
  require_integer(c, 1, "indices");
  const auto &data = c.shape(0), &indices = c.shape(1);
  c.set(0, c.element(0), indices);
  if (!data.ranked()) return;
  c.require(data.rank() > 0, "data is a scalar, wanted at least one axis");
  const auto along = normalize_axis(axis, data.rank(), "axis");
  if (!indices.ranked()) return c.set(0, c.element(0), Shape::of_rank(data.rank()));
  c.require(indices.rank() == data.rank(), "indices have shape {}, wanted rank {}", to_string(indices),
            data.rank());
  for (std::size_t i = 0; i < data.rank(); ++i)
    c.require(i == along || indices[i].low() <= data[i].high(),
              "indices {} are larger than data {} on axis {}", to_string(indices), to_string(data), i);
}

void GatherElements::evaluate(EvalContext& c) const {
  if (moved_unpacked(c)) return;
  const auto &data = c.dims(0), &shape = c.dims(1);
  const auto along = normalize_axis(axis, data.size(), "axis");
  const auto strides = dense_strides(data);
  const auto indices = c.ints(1);
  Mover mover(c, 0);
  Dims position(shape.size(), 0);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    std::int64_t from = checked_index(indices[i], data[along]) * strides[along];
    for (std::size_t a = 0; a < shape.size(); ++a)
      if (a != along) from += position[a] * strides[a];
    mover.copy(static_cast<std::int64_t>(i), from, 1);
    next_position(position, shape);
  }
}

void GatherND::infer(InferContext& c) const {
  require_integer(c, 1, "indices");
  const auto &data = c.shape(0), &indices = c.shape(1);
  c.set(0, c.element(0), Shape());
  if (!data.ranked() || !indices.ranked()) return;
  c.require(data.rank() > 0 && indices.rank() > 0,
            "data {} or indices {} are scalars, wanted at least one axis", to_string(data),
            to_string(indices));
  const auto batch = checked_batch(c, batch_dims, std::min(data.rank(), indices.rank()) - 1);
  const auto& last = indices[indices.rank() - 1];
  if (!last.known()) return;
  const auto most = static_cast<std::int64_t>(data.rank() - batch);
  c.require(last.size() >= 1 && last.size() <= most,
            "the last axis of indices {} addresses {} axes, wanted 1..{}", to_string(indices), last.size(),
            most);
  auto out = slice_of(indices, 0, indices.rank() - 1);
  append(out, slice_of(data, batch + static_cast<std::size_t>(last.size()), data.rank()));
  c.set(0, c.element(0), std::move(out));
}

void GatherND::evaluate(EvalContext& c) const {
  if (moved_unpacked(c)) return;
  const auto &data = c.dims(0), &shape = c.dims(1);
  const auto batch = static_cast<std::size_t>(batch_dims), depth = static_cast<std::size_t>(shape.back());
  const auto batches = volume(data, 0, batch), tuples = volume(shape, batch, shape.size() - 1);
  const auto inner = volume(data, batch + depth, data.size()), per_batch = volume(data, batch, data.size());
  const auto strides = dense_strides(data);
  const auto indices = c.ints(1);
  Mover mover(c, 0);
  std::size_t read = 0;
  for (std::int64_t b = 0; b < batches; ++b)
    for (std::int64_t t = 0; t < tuples; ++t) {
      auto from = b * per_batch;
      for (std::size_t d = 0; d < depth; ++d)
        from += checked_index(indices[read++], data[batch + d]) * strides[batch + d];
      mover.copy((b * tuples + t) * inner, from, inner);
    }
}

void GatherTree::infer(InferContext& c) const {
  require_rank(c, 0, 3, "step_ids");
  require_rank(c, 1, 3, "parent_idx");
  require_rank(c, 2, 1, "max_seq_len");
  require_one_element(c, 3, "end_token");
  const auto shape = merge(c.shape(0), c.shape(1));
  c.require(shape.has_value(), "step_ids {} and parent_idx {} differ", to_string(c.shape(0)),
            to_string(c.shape(1)));
  if (shape->ranked() && c.shape(2).ranked())
    c.require((*shape)[1].fits(c.shape(2)[0]),
              "max_seq_len has shape {}, wanted one for each of the batch {}", to_string(c.shape(2)),
              to_string((*shape)[1]));
  c.set(0, c.element(0), *shape);
}

void GatherTree::evaluate(EvalContext& c) const {
  const auto& dims = c.dims(0);
  const auto parents = c.ints(1), lengths = c.ints(2);
  with_number_type(c.in(0).element_type(), [&]<class T>() {
    const auto steps = c.numbers<T>(0);
    const T end = c.numbers<T>(3).at(0);
    std::vector<T> out(steps.size(), end);
    StopPoints points;
    for (std::int64_t b = 0; b < dims[1]; ++b)
      for (std::int64_t beam = 0; beam < dims[2]; ++beam) {
        points(2 * dims[0]);
        const auto place = [&](std::int64_t t, std::int64_t k) {
          return static_cast<std::size_t>((t * dims[1] + b) * dims[2] + k);
        };
        const auto length = std::clamp<std::int64_t>(lengths[static_cast<std::size_t>(b)], 0, dims[0]);
        auto from = beam;
        for (auto t = length; t-- > 0;) {
          if (from < 0 || from >= dims[2])
            fail(ErrorCode::bad_input, "parent {} is not one of {} beams", from, dims[2]);
          out[place(t, beam)] = steps[place(t, from)];
          from = parents[place(t, from)];
        }
        bool finished = false;
        for (std::int64_t t = 0; t < length; ++t) {
          if (finished) out[place(t, beam)] = end;
          finished = finished || out[place(t, beam)] == end;
        }
      }
    c.store(0, out);
  });
}

/// The axes of the indices take the place of the axis.
Verdict Gather::permute(PermuteContext& c) const {
  const auto axis = c.node().ints(2);
  const Shape& indices = c.node().shape(1);
  if (!axis || axis->size() != 1 || !indices.ranked()) return not_known("axis and indices");
  if (batch_dims != 0) return Verdict::no("it has batch dimensions");
  const auto from = static_cast<std::int64_t>(normalize_axis(axis->front(), c.rank(), "axis"));
  const auto to = c.axis(from), more = static_cast<std::int64_t>(indices.rank()) - 1;
  c.replace(2, Ints{to});
  Ints order;
  for (std::int64_t k = 0; k < static_cast<std::int64_t>(c.rank()); ++k) {
    const auto at = c.order()[static_cast<std::size_t>(k)];
    if (k != from) order.push_back(at < to ? at : at + more);
    for (std::int64_t i = 0; k == from && i <= more; ++i) order.push_back(to + i);
  }
  c.set_output(0, std::move(order));
  return Verdict::yes();
}

ShapeValue Gather::shape_value(ShapeValueContext& c) const {
  const auto data = c.input(0), indices = c.input(1);
  if (!data || !indices || c.shape(0).rank() != 1) return std::nullopt;
  std::vector<Dim> out;
  const auto size = static_cast<std::int64_t>(data->size());
  for (const auto& d : *indices) {
    if (!d.known()) return std::nullopt;
    const auto i = d.size() < 0 ? d.size() + size : d.size();
    if (i < 0 || i >= size) return std::nullopt;
    out.push_back((*data)[static_cast<std::size_t>(i)]);
  }
  return out;
}

void register_gathering(Registry& r) {
  r.add<Gather>();
  r.add<GatherElements>();
  r.add<GatherND>();
  r.add<GatherTree>();
  r.add<ScatterUpdate>();
  r.add<ScatterElementsUpdate>();
  r.add<ScatterNDUpdate>();
}

}  // namespace lamina
