#include "ops/pooling.h"

#include <cmath>
#include <limits>

#include "base/cancellation.h"
#include "base/parallel.h"
#include "base/work_partition.h"
#include "graph/op_model.h"
#include "ops/operators.h"
#include "ops/require.h"
#include "ops/walk.h"

namespace lamina {
namespace {

WindowRounding rounding_of(RoundingType type) {
  if (type == RoundingType::floor) return WindowRounding::floor;
  return type == RoundingType::ceil ? WindowRounding::ceil : WindowRounding::torch;
}

bool same_padding(const Window& w) {
  return w.auto_pad == AutoPad::same_upper || w.auto_pad == AutoPad::same_lower;
}

Shape pooled_shape(const InferContext& c, const Window& window, const Ints& kernel, RoundingType rounding) {
  require_rank(c, 0, 3, 5, "input");
  c.require(!kernel.empty() && kernel.size() <= 3, "kernel has {} entries, wanted 1 to 3", kernel.size());
  const auto& x = c.shape(0);
  std::vector<Dim> unknown(kernel.size());
  const auto spatial = x.ranked() ? std::span(x.dims()).subspan(2) : std::span<const Dim>(unknown);
  const auto w = resolve(window, spatial, kernel);
  if (!x.ranked()) return Shape::of_rank(kernel.size() + 2);
  std::vector<Dim> out{x[0], x[1]};
  for (std::size_t i = 0; i < kernel.size(); ++i)
    out.push_back(same_padding(window) ? same_count(spatial[i], w.strides[i])
                                       : window_count(spatial[i], kernel[i], w.strides[i], w.dilations[i],
                                                      w.pads_begin[i], w.pads_end[i], rounding_of(rounding)));
  return Shape(std::move(out));
}

using Axes = std::array<std::int64_t, 3>;

Axes three_axes(std::span<const std::int64_t> list, std::int64_t fallback) {
  Axes out{fallback, fallback, fallback};
  std::copy(list.begin(), list.end(), out.end() - static_cast<std::ptrdiff_t>(list.size()));
  return out;
}

/// Where one output element's window lies along an axis: positions first, first + step, ... of which those in
/// [0, in) exist; `framed` of them lie in the padded frame.
struct PooledRange {
  std::int64_t begin, end, step, framed;
};

/// The windows of all outputs along the axes, as ranges of existing positions.
struct Windows {
  Axes in, out;
  std::array<std::vector<PooledRange>, 3> ranges;
  std::int64_t planes = 0;
};

PooledRange clipped(std::int64_t first, std::int64_t count, std::int64_t step, std::int64_t in,
                    std::int64_t frame_end) {
  const auto below = [&](std::int64_t limit) {  // how many positions lie before the limit
    return std::clamp<std::int64_t>(ceil_div(limit - first, step), 0, count);
  };
  const std::int64_t skipped = first < 0 ? below(0) : 0;
  const std::int64_t last = below(in);
  return {first + skipped * step, first + last * step, step, below(frame_end)};
}

Windows windows_of(const Dims& x, const Dims& y, const Window& window, const Ints& kernel) {
  const auto shape = Shape::of(x);
  const auto w = resolve(window, std::span(shape.dims()).subspan(2), kernel);
  Windows all;
  all.planes = x[0] * x[1];
  all.in = three_axes(std::span(x).subspan(2), 1);
  all.out = three_axes(std::span(y).subspan(2), 1);
  const auto k = three_axes(kernel, 1), s = three_axes(w.strides, 1), d = three_axes(w.dilations, 1),
             pb = three_axes(w.pads_begin, 0), pe = three_axes(w.pads_end, 0);
  for (std::size_t a = 0; a < 3; ++a)
    for (std::int64_t o = 0; o < all.out[a]; ++o)
      all.ranges[a].push_back(clipped(o * s[a] - pb[a], k[a], d[a], all.in[a], all.in[a] + pe[a]));
  return all;
}

Windows adaptive_windows(const Dims& x, const Dims& y) {
  Windows all;
  all.planes = x[0] * x[1];
  all.in = three_axes(std::span(x).subspan(2), 1);
  all.out = three_axes(std::span(y).subspan(2), 1);
  for (std::size_t a = 0; a < 3; ++a)
    for (std::int64_t o = 0; o < all.out[a]; ++o) {
      const auto begin = o * all.in[a] / all.out[a], end = ceil_div((o + 1) * all.in[a], all.out[a]);
      all.ranges[a].push_back({begin, end, 1, end - begin});
    }
  return all;
}

/// Calls visit(output index, z range, y range, x range) for the outputs of every plane, planes in parallel.
template <class F>
void for_each_window(const Windows& w, const F& visit) {
  const std::int64_t per_plane = w.out[0] * w.out[1] * w.out[2];
  parallel_for(
      w.planes, 20'000 / std::max<std::int64_t>(per_plane, 1), [&](std::int64_t begin, std::int64_t end) {
        StopPoints points;
        const auto size = [](const PooledRange& r) { return std::max<std::int64_t>(r.end - r.begin, 1); };
        for (std::int64_t p = begin; p < end; ++p) {
          std::int64_t o = p * per_plane;
          for (const auto& z : w.ranges[0])
            for (const auto& y : w.ranges[1])
              for (const auto& x : w.ranges[2]) {
                visit(p, o++, z, y, x);
                points(size(z) * size(y) * size(x));
              }
        }
      });
}

/// Calls f(offset in the plane) for every existing position of a window.
template <class F>
void for_each_position(const Axes& in, const PooledRange& z, const PooledRange& y, const PooledRange& x,
                       const F& f) {
  for (auto k = z.begin; k < z.end; k += z.step)
    for (auto j = y.begin; j < y.end; j += y.step)
      for (auto i = x.begin; i < x.end; i += x.step) f((k * in[1] + j) * in[2] + i);
}

template <class S>
struct Maxima {
  std::vector<S> values;
  Ints positions;  // in the plane, -1 for a window without elements
};

template <class S>
Maxima<S> maxima(const Windows& w, const std::vector<S>& x, S lowest) {
  const auto count = static_cast<std::size_t>(w.planes * w.out[0] * w.out[1] * w.out[2]);
  const std::int64_t plane = w.in[0] * w.in[1] * w.in[2];
  Maxima<S> m{std::vector<S>(count, lowest), Ints(count, -1)};
  for_each_window(w, [&](std::int64_t p, std::int64_t o, const PooledRange& rz, const PooledRange& ry,
                         const PooledRange& rx) {
    const S* from = x.data() + p * plane;
    auto& best = m.values[static_cast<std::size_t>(o)];
    auto& where = m.positions[static_cast<std::size_t>(o)];
    for_each_position(w.in, rz, ry, rx, [&](std::int64_t at) {
      const bool nan_first = std::isnan(from[at]) && !std::isnan(best);
      if (where < 0 || from[at] > best || nan_first) {
        best = from[at];
        where = at;
      }
    });
  });
  return m;
}

/// Lowest finite number of a floating-point type.
double lowest_number(ElementType element) {
  switch (element) {
    case ElementType::f16:
      return -65504;
    case ElementType::bf16:
      return -0x1.fep127;
    case ElementType::f32:
      return std::numeric_limits<float>::lowest();
    default:
      return std::numeric_limits<double>::lowest();
  }
}

/// Writes the maxima; returns their positions.
Ints store_maxima(EvalContext& c, const Windows& w) {
  const auto element = c.out_element(0);
  return with_number_type(element, [&]<class T>() {
    T lowest{};
    if constexpr (std::is_same_v<T, double>)
      lowest = lowest_number(element);
    else
      lowest = integer_range<T>(element).first;
    auto m = maxima<T>(w, c.numbers<T>(0), lowest);
    c.store(0, m.values);
    return std::move(m.positions);
  });
}

/// Position in a plane, counted column by column over its last two axes.
std::int64_t column_major(std::int64_t at, const Axes& in) {
  const auto z = at / (in[1] * in[2]), y = at / in[2] % in[1], x = at % in[2];
  return (x * in[1] + y) * in[0] + z;
}

/// Sums of 64-bit integers that cannot overflow.
__extension__ using Wide = __int128;

double mean_of(double sum, std::int64_t count) { return sum / static_cast<double>(count); }
/// Rounded to the nearest, halves to even.
Wide mean_of(Wide sum, std::int64_t count) {
  const Wide quotient = sum / count, rest = sum % count, twice = 2 * (rest < 0 ? -rest : rest);
  const bool away = twice > count || (twice == count && quotient % 2 != 0);
  return quotient + (away ? (sum < 0 ? -1 : 1) : 0);
}

template <class T>
std::vector<T> means(const Windows& w, const std::vector<T>& x, bool exclude_pad) {
  using Sum = std::conditional_t<std::is_same_v<T, double>, double, Wide>;
  std::vector<T> out(static_cast<std::size_t>(w.planes * w.out[0] * w.out[1] * w.out[2]));
  const std::int64_t plane = w.in[0] * w.in[1] * w.in[2];
  for_each_window(w, [&](std::int64_t p, std::int64_t o, const PooledRange& rz, const PooledRange& ry,
                         const PooledRange& rx) {
    Sum sum = 0;
    std::int64_t count = 0;
    for_each_position(w.in, rz, ry, rx, [&](std::int64_t at) {
      sum += x[static_cast<std::size_t>(p * plane + at)];
      ++count;
    });
    if (!exclude_pad) count = rz.framed * ry.framed * rx.framed;
    out[static_cast<std::size_t>(o)] = count == 0 ? T{0} : static_cast<T>(mean_of(sum, count));
  });
  return out;
}

ElementType mean_element(const InferContext& c, ElementType sums) {
  if (sums == ElementType::undefined) return c.element(0);
  const auto type = c.element(0);
  c.require(sums == ElementType::f32, "sums are {}, wanted f32", name_of(sums));
  c.require(type == ElementType::undefined || (is_integer(type) && bits_of(type) == 8),
            "sums of {}, wanted those of integers of 8 bits", name_of(type));
  return sums;
}

void store_means(EvalContext& c, const Windows& w, bool exclude_pad) {
  with_number_type(c.out_element(0), [&]<class T>() { c.store(0, means(w, c.numbers<T>(0), exclude_pad)); });
}

Shape adaptive_shape(const InferContext& c) {
  require_rank(c, 0, 3, 5, "input");
  require_integer(c, 1, "output shape");
  require_rank(c, 1, 0, 1, "output shape");
  const auto& x = c.shape(0);
  const auto sizes = c.dims(1);
  if (!x.ranked() && !sizes) return Shape();
  const std::size_t axes = x.ranked() ? x.rank() - 2 : sizes->size();
  std::vector<Dim> out{x.ranked() ? x[0] : Dim(), x.ranked() ? x[1] : Dim()};
  for (std::size_t i = 0; i < axes; ++i) {
    if (!sizes) {
      out.emplace_back();
      continue;
    }
    c.require(sizes->size() == axes, "output shape has {} entries, wanted {}", sizes->size(), axes);
    const Dim d = (*sizes)[i];
    c.require(!d.known() || (d.size() >= 1 && d.size() <= INT32_MAX),
              "output shape has the entry {}, wanted 1 to {}", d.low(), INT32_MAX);
    c.require(!x.ranked() || x[i + 2].high() >= 1, "input has shape {}, wanted spatial sizes of 1 or more",
              to_string(x));
    out.push_back(d);
  }
  return Shape(std::move(out));
}

void check_index_type(const InferContext& c, ElementType type) {
  c.require(type == ElementType::i64 || type == ElementType::i32,
            "index_element_type is {}, wanted i32 or i64", name_of(type));
}

}  // namespace

void MaxPool::infer(InferContext& c) const {
  require_number(c, 0, "input");
  c.require(c.outputs() <= 2, "{} outputs, wanted 1 or 2", c.outputs());
  const auto shape = pooled_shape(c, *this, kernel, rounding_type);
  c.set(0, c.element(0), shape);
  normalize_axis(axis, kernel.size() + 2, "axis");
  c.require(storage_order == 0 || storage_order == 1, "storage_order is {}, wanted 0 or 1", storage_order);
  if (c.outputs() < 2) return;
  check_index_type(c, index_element_type);
  c.set(1, index_element_type, shape);
}

void MaxPool::evaluate(EvalContext& c) const {
  const auto& x = c.dims(0);
  const auto w = windows_of(x, c.out_dims(), *this, kernel);
  auto positions = store_maxima(c, w);
  if (c.outputs() < 2 || c.in(0).size() == 0) return;
  const auto first = normalize_axis(axis, x.size(), "axis");
  const std::int64_t plane = w.in[0] * w.in[1] * w.in[2], range = volume(x, first, x.size());
  const auto per_plane = static_cast<std::int64_t>(positions.size()) / w.planes;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    auto at = std::max<std::int64_t>(positions[i], 0);
    if (storage_order == 1) at = column_major(at, w.in);
    positions[i] = (static_cast<std::int64_t>(i) / per_plane * plane + at) % range;
  }
  c.store(1, positions);
}

void AvgPool::infer(InferContext& c) const {
  require_number(c, 0, "input");
  c.set(0, mean_element(c, sums), pooled_shape(c, *this, kernel, rounding_type));
}

void AvgPool::evaluate(EvalContext& c) const {
  store_means(c, windows_of(c.dims(0), c.out_dims(), *this, kernel), exclude_pad);
}

void AdaptiveAvgPool::infer(InferContext& c) const {
  require_number(c, 0, "input");
  c.set(0, mean_element(c, sums), adaptive_shape(c));
}

void AdaptiveAvgPool::evaluate(EvalContext& c) const {
  store_means(c, adaptive_windows(c.dims(0), c.out_dims()), true);
}

void AdaptiveMaxPool::infer(InferContext& c) const {
  require_number(c, 0, "input");
  check_index_type(c, index_element_type);
  const auto shape = adaptive_shape(c);
  c.set(0, c.element(0), shape);
  if (c.outputs() > 1) c.set(1, index_element_type, shape);
}

void AdaptiveMaxPool::evaluate(EvalContext& c) const {
  const auto positions = store_maxima(c, adaptive_windows(c.dims(0), c.out_dims()));
  if (c.outputs() > 1) c.store(1, positions);
}

void register_pooling(Registry& r) {
  r.add<MaxPool>();
  r.add<AvgPool>();
  r.add<AdaptiveAvgPool>();
  r.add<AdaptiveMaxPool>();
}

}  // namespace lamina
