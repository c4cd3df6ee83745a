#include <algorithm>
#include <cstring>

#include "base/cancellation.h"
#include "ops/gathering.h"
#include "ops/packed.h"
#include "ops/require.h"
#include "ops/scalar.h"
#include "ops/walk.h"

namespace lamina {

namespace {

/// The output starts as a copy of the data.
std::byte* copy_data(EvalContext& c) {
  std::memcpy(c.out().raw(), c.in(0).raw(), c.in(0).bytes());
  return c.out().raw();
}

/// What a pair becomes, by the scalar operator of that name.
template <class F, class T>
T combined(T old, T update) {
  if constexpr (std::is_same_v<T, double>)
    return F::real(old, update);
  else
    return F::integer(old, update);
}

/// Division of integers towards minus infinity.
template <class T>
T mean(T sum, std::int64_t count) {
  if constexpr (std::is_same_v<T, double>)
    return sum / static_cast<double>(count);
  else
    return scalar::floored_div(sum, static_cast<T>(count));
}

template <class T>
T reduced(ElementsReduction how, T old, T update) {
  switch (how) {
    case ElementsReduction::sum:
    case ElementsReduction::mean:
      return combined<scalar::Add>(old, update);
    case ElementsReduction::prod:
      return combined<scalar::Multiply>(old, update);
    case ElementsReduction::min:
      return combined<scalar::Minimum>(old, update);
    case ElementsReduction::max:
      return combined<scalar::Maximum>(old, update);
    default:
      return update;
  }
}

template <class T>
T reduced(SlicesReduction how, T old, T update) {
  switch (how) {
    case SlicesReduction::sum:
      return combined<scalar::Add>(old, update);
    case SlicesReduction::sub:
      return combined<scalar::Subtract>(old, update);
    case SlicesReduction::prod:
      return combined<scalar::Multiply>(old, update);
    case SlicesReduction::min:
      return combined<scalar::Minimum>(old, update);
    case SlicesReduction::max:
      return combined<scalar::Maximum>(old, update);
    default:
      return update;
  }
}

/// Calls body with the numbers of data and updates, and stores what it leaves.
template <class F>
void on_numbers(EvalContext& c, const F& body) {
  with_number_type(c.in(0).element_type(), [&]<class T>() {
    auto values = c.numbers<T>(0);
    body(values, c.numbers<T>(2));
    c.store(0, values);
  });
}

/// Where each element of the indices goes in the data, in row-major order of the indices.
Ints element_targets(const Dims& data, const Dims& shape, const Ints& indices, std::size_t along) {
  const auto strides = dense_strides(data);
  Ints out(indices.size());
  Dims position(shape.size(), 0);
  StopPoints points;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    points(8);
    out[i] = checked_index(indices[i], data[along]) * strides[along];
    for (std::size_t a = 0; a < shape.size(); ++a)
      if (a != along) out[i] += position[a] * strides[a];
    next_position(position, shape);
  }
  return out;
}

/// Where each tuple's slice begins in the data.
Ints slice_targets(const Dims& data, const Dims& shape, const Ints& indices) {
  const auto strides = dense_strides(data);
  const auto depth = static_cast<std::size_t>(shape.back());
  Ints out(static_cast<std::size_t>(volume(shape, 0, shape.size() - 1)), 0);
  std::size_t read = 0;
  StopPoints points;
  for (auto& o : out)
    for (std::size_t d = 0; d < depth; points(4), ++d)
      o += checked_index(indices[read++], data[d]) * strides[d];
  return out;
}

}  // namespace

void ScatterUpdate::infer(InferContext& c) const {
  require_integer(c, 1, "indices");
  require_same_element(c, 0, 2, "updates");
  const auto &data = c.shape(0), &indices = c.shape(1), &updates = c.shape(2);
  const auto axis_value = known_int(c, 3, "axis");
  c.set(0, c.element(0), data);
  if (!data.ranked()) return;
  c.require(data.rank() > 0, "data is a scalar, wanted at least one axis");
  if (!axis_value) return;
  const auto axis = normalize_axis(*axis_value, data.rank(), "axis");
  if (!indices.ranked()) return;
  std::vector<Dim> wanted(data.dims().begin(), data.dims().begin() + static_cast<std::ptrdiff_t>(axis));
  wanted.insert(wanted.end(), indices.dims().begin(), indices.dims().end());
  wanted.insert(wanted.end(), data.dims().begin() + static_cast<std::ptrdiff_t>(axis) + 1, data.dims().end());
  c.require(updates.fits(Shape(wanted)), "updates have shape {}, wanted {}", to_string(updates),
            to_string(Shape(wanted)));
}

void ScatterUpdate::evaluate(EvalContext& c) const {
  if (moved_unpacked(c)) return;
  const auto& data = c.dims(0);
  const auto axis = normalize_axis(c.ints(3).at(0), data.size(), "axis");
  const auto indices = c.ints(1);
  const auto outer = volume(data, 0, axis), size = data[axis],
             count = static_cast<std::int64_t>(indices.size());
  auto* out = copy_data(c);
  const auto bytes =
      volume(data, axis + 1, data.size()) * static_cast<std::int64_t>(element_bytes(c.in(0).element_type()));
  const auto* updates = c.in(2).raw();
  if (c.in(2).size() == 0) return;
  StopPoints points(1 << 19);
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < count; ++i) {
      points(bytes + 64);
      const auto index = checked_index(indices[static_cast<std::size_t>(i)], size);
      std::memcpy(out + (o * size + index) * bytes, updates + (o * count + i) * bytes,
                  static_cast<std::size_t>(bytes));
    }
}

void ScatterElementsUpdate::infer(InferContext& c) const {
  require_integer(c, 1, "indices");
  require_same_element(c, 0, 2, "updates");
  const auto &data = c.shape(0), &indices = c.shape(1);
  const auto axis_value = known_int(c, 3, "axis");
  c.set(0, c.element(0), data);
  c.require(indices.fits(c.shape(2)), "indices have shape {}, updates {}, wanted the same",
            to_string(indices), to_string(c.shape(2)));
  if (!data.ranked()) return;
  c.require(data.rank() > 0, "data is a scalar, wanted at least one axis");
  const auto along = axis_value ? normalize_axis(*axis_value, data.rank(), "axis") : data.rank();
  if (!indices.ranked()) return;
  c.require(indices.rank() == data.rank(), "indices have shape {}, wanted rank {}", to_string(indices),
            data.rank());
  for (std::size_t i = 0; i < data.rank() && axis_value; ++i)
    c.require(i == along || indices[i].low() <= data[i].high(),
              "indices {} are larger than data {} on axis {}", to_string(indices), to_string(data), i);
}

void ScatterElementsUpdate::evaluate(EvalContext& c) const {
  if (reduction == ElementsReduction::none && moved_unpacked(c)) return;
  const auto along = normalize_axis(c.ints(3).at(0), c.dims(0).size(), "axis");
  const auto targets = element_targets(c.dims(0), c.dims(1), c.ints(1), along);
  if (reduction == ElementsReduction::none) {
    auto* out = copy_data(c);
    const auto bytes = element_bytes(c.in(0).element_type());
    StopPoints points;
    for (std::size_t i = 0; i < targets.size(); points(8), ++i)
      std::memcpy(out + static_cast<std::size_t>(targets[i]) * bytes, c.in(2).raw() + i * bytes, bytes);
    return;
  }
  on_numbers(c, [&](auto& values, const auto& updates) {
    Ints parts(values.size(), use_init_val ? 1 : 0);
    StopPoints points;
    for (std::size_t i = 0; i < targets.size(); ++i) {
      points(8);
      const auto t = static_cast<std::size_t>(targets[i]);
      values[t] = parts[t] == 0 ? updates[i] : reduced(reduction, values[t], updates[i]);
      ++parts[t];
    }
    if (reduction != ElementsReduction::mean) return;
    for (std::size_t t = 0; t < values.size(); ++t)
      if (parts[t] > 1) values[t] = mean(values[t], parts[t]);
  });
}

void ScatterNDUpdate::infer(InferContext& c) const {
  require_integer(c, 1, "indices");
  require_same_element(c, 0, 2, "updates");
  const auto &data = c.shape(0), &indices = c.shape(1), &updates = c.shape(2);
  c.set(0, c.element(0), data);
  if (!data.ranked() || !indices.ranked()) return;
  c.require(data.rank() > 0 && indices.rank() > 0,
            "data {} or indices {} are scalars, wanted at least one axis", to_string(data),
            to_string(indices));
  const auto& last = indices[indices.rank() - 1];
  if (!last.known()) return;
  c.require(last.size() >= 1 && last.size() <= static_cast<std::int64_t>(data.rank()),
            "the last axis of indices {} addresses {} axes, wanted 1..{}", to_string(indices), last.size(),
            data.rank());
  std::vector<Dim> wanted(indices.dims().begin(), indices.dims().end() - 1);
  wanted.insert(wanted.end(), data.dims().begin() + last.size(), data.dims().end());
  c.require(updates.fits(Shape(wanted)), "updates have shape {}, wanted {}", to_string(updates),
            to_string(Shape(wanted)));
}

void ScatterNDUpdate::evaluate(EvalContext& c) const {
  if (reduction == SlicesReduction::none && moved_unpacked(c)) return;
  const auto &data = c.dims(0), &shape = c.dims(1);
  const auto targets = slice_targets(data, shape, c.ints(1));
  const auto inner =
      static_cast<std::size_t>(volume(data, static_cast<std::size_t>(shape.back()), data.size()));
  if (reduction == SlicesReduction::none) {
    auto* out = copy_data(c);
    const auto bytes = element_bytes(c.in(0).element_type());
    if (inner == 0) return;
    StopPoints points(1 << 19);
    for (std::size_t i = 0; i < targets.size(); points(static_cast<std::int64_t>(inner * bytes) + 64), ++i)
      std::memcpy(out + static_cast<std::size_t>(targets[i]) * bytes, c.in(2).raw() + i * inner * bytes,
                  inner * bytes);
    return;
  }
  on_numbers(c, [&](auto& values, const auto& updates) {
    StopPoints points;
    for (std::size_t i = 0; i < targets.size(); ++i)
      for (std::size_t k = 0; k < inner; ++k) {
        points(4);
        auto& v = values[static_cast<std::size_t>(targets[i]) + k];
        v = reduced(reduction, v, updates[i * inner + k]);
      }
  });
}

}  // namespace lamina
