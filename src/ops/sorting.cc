#include "ops/sorting.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/cancellation.h"
#include "graph/op_model.h"
#include "ops/operators.h"
#include "ops/require.h"
#include "ops/walk.h"

namespace lamina {

namespace {

void require_index_type(const InferContext& c, ElementType type, std::string_view what) {
  c.require(type == ElementType::i32 || type == ElementType::i64, "{} is {}, wanted i32 or i64", what,
            name_of(type));
}

/// A total order: NaN comes after everything and equals itself.
template <class T>
int compared(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b))
      return static_cast<int>(std::isnan(a)) - static_cast<int>(std::isnan(b));
  }
  return a < b ? -1 : (b < a ? 1 : 0);
}

/// Calls body with the input's elements, in the type that they are computed in.
template <class F>
void with_numbers(EvalContext& c, std::size_t input, const F& body) {
  with_number_type(c.in(input).element_type(), [&]<class T>() { body(c.numbers<T>(input)); });
}

/// The indices of the k best of one row, in the order wanted.
template <class Less>
Ints best_of_row(std::int64_t size, std::int64_t k, TopKSort sort, const Less& less, StopPoints& points) {
  const auto better = comparing(points, less);
  Ints order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + k, order.end(), better);
  order.resize(static_cast<std::size_t>(k));
  if (sort == TopKSort::index) std::sort(order.begin(), order.end());
  return order;
}

template <class T>
void top_k(EvalContext& c, const TopK& op, const std::vector<T>& x) {
  const auto& dims = c.dims(0);
  const auto axis = normalize_axis(op.axis, dims.size(), "axis");
  const auto size = dims[axis], k = c.out_dims(0)[axis], inner = volume(dims, axis + 1, dims.size());
  const auto outer = volume(dims, 0, axis);
  std::vector<T> values(c.out(0).size());
  Ints indices(values.size());
  StopPoints points;
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < inner; ++i) {
      const auto at = [&](std::int64_t n) { return x[static_cast<std::size_t>((o * size + n) * inner + i)]; };
      const auto better = [&](std::int64_t a, std::int64_t b) {
        const int order = compared(at(a), at(b));
        if (order == 0) return a < b;
        return op.mode == TopKMode::max ? order > 0 : order < 0;
      };
      const auto best = best_of_row(size, k, op.sort, better, points);
      for (std::int64_t n = 0; n < k; ++n) {
        const auto to = static_cast<std::size_t>((o * k + n) * inner + i);
        indices[to] = best[static_cast<std::size_t>(n)];
        values[to] = at(indices[to]);
      }
    }
  c.store(0, values);
  if (c.outputs() > 1) c.store(1, indices);
}

}  // namespace

void TopK::infer(InferContext& c) const {
  require_index_type(c, index_element_type, "index_element_type");
  require_integer(c, 1, "k");
  require_one_element(c, 1, "k");
  const auto& x = c.shape(0);
  Shape out = x;
  if (x.ranked()) {
    c.require(x.rank() > 0, "x is a scalar, wanted at least one axis");
    const auto along = normalize_axis(axis, x.rank(), "axis");
    const auto k = c.dims(1);
    out[along] = k && k->size() == 1 ? k->front() : Dim(0, x[along].high());
    if (out[along].known())
      c.require(out[along].size() >= 0 && out[along].size() <= x[along].high(),
                "k is {}, wanted 0 to {} (axis {} of {})", out[along].size(), to_string(x[along]), along,
                to_string(x));
  }
  c.set(0, c.element(0), out);
  if (c.outputs() > 1) c.set(1, index_element_type, out);
}

void TopK::evaluate(EvalContext& c) const {
  with_numbers(c, 0, [&](const auto& x) { top_k(c, *this, x); });
}

void NonZero::infer(InferContext& c) const {
  require_index_type(c, output_type, "output_type");
  const auto& x = c.shape(0);
  const Dim rank = x.ranked() ? Dim(static_cast<std::int64_t>(x.rank())) : Dim();
  const Dim count = x.known() ? Dim(0, x.count().size()) : Dim();
  c.set(0, output_type, Shape{rank, count});
}

void NonZero::evaluate(EvalContext& c) const {
  const auto& dims = c.dims(0);
  const auto x = c.doubles(0);
  const auto count = std::count_if(x.begin(), x.end(), [](double v) { return v != 0; });
  Ints out(dims.size() * static_cast<std::size_t>(count));
  Dims position(dims.size(), 0);
  std::int64_t found = 0;
  StopPoints points;
  for (const double v : x) {
    points();
    if (v != 0) {
      for (std::size_t a = 0; a < dims.size(); ++a)
        out[a * static_cast<std::size_t>(count) + static_cast<std::size_t>(found)] = position[a];
      ++found;
    }
    next_position(position, dims);
  }
  c.allocate(0, {static_cast<std::int64_t>(dims.size()), count});
  c.store(0, out);
}

namespace {

/// The tensor as `count` items of `outer` rows by `inner` columns; single elements when there is no axis.
struct Items {
  std::int64_t outer = 1, count = 0, inner = 1;
  template <class T>
  T at(const std::vector<T>& x, std::int64_t item, std::int64_t part) const {
    return x[static_cast<std::size_t>(((part / inner) * count + item) * inner + part % inner)];
  }
};

struct Distinct {
  Ints first, inverse, counts;
};

/// Equal items become one; numbered ascending, or by their first occurrence.
template <class T>
Distinct distinct(const std::vector<T>& x, const Items& items, bool sorted, bool wants_inverse) {
  const auto parts = items.outer * items.inner;
  if (parts == 0 && items.count > 0)  // slices without elements are equal
    return {{0}, Ints(wants_inverse ? static_cast<std::size_t>(items.count) : 0, 0), {items.count}};
  StopPoints points;
  const auto order_of = [&](std::int64_t a, std::int64_t b) {
    for (std::int64_t p = 0; p < parts; ++p) {
      points();  // items that differ at once count, too
      if (const int c = compared(items.at(x, a, p), items.at(x, b, p)); c != 0) return c;
    }
    return 0;
  };
  Ints order(static_cast<std::size_t>(items.count));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return order_of(a, b) < 0; });
  Distinct out;
  out.inverse.resize(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || order_of(order[i - 1], order[i]) != 0) {
      out.first.push_back(order[i]);
      out.counts.push_back(0);
    }
    ++out.counts.back();
    out.inverse[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(out.first.size()) - 1;
  }
  if (sorted) return out;
  std::vector<std::size_t> by_first(out.first.size()), place(out.first.size());
  std::iota(by_first.begin(), by_first.end(), std::size_t{0});
  std::sort(by_first.begin(), by_first.end(), [&](auto a, auto b) { return out.first[a] < out.first[b]; });
  Distinct moved;
  for (std::size_t i = 0; i < by_first.size(); ++i) {
    place[by_first[i]] = i;
    moved.first.push_back(out.first[by_first[i]]);
    moved.counts.push_back(out.counts[by_first[i]]);
  }
  for (const auto group : out.inverse)
    moved.inverse.push_back(static_cast<std::int64_t>(place[static_cast<std::size_t>(group)]));
  return moved;
}

template <class T>
void unique(EvalContext& c, const std::vector<T>& x, bool sorted) {
  const auto& dims = c.dims(0);
  Items items;
  items.count = static_cast<std::int64_t>(x.size());
  Dims shape{0};
  std::size_t axis = 0;
  if (c.has(1)) {
    axis = normalize_axis(c.ints(1).at(0), dims.size(), "axis");
    items = {volume(dims, 0, axis), dims[axis], volume(dims, axis + 1, dims.size())};
    shape = dims;
  }
  const auto groups = distinct(x, items, sorted, c.outputs() > 2);
  shape[axis] = static_cast<std::int64_t>(groups.first.size());
  const Items target{items.outer, shape[axis], items.inner};
  std::vector<T> values(groups.first.size() * static_cast<std::size_t>(items.outer * items.inner));
  for (std::int64_t g = 0; g < target.count; ++g)
    for (std::int64_t p = 0; p < items.outer * items.inner; ++p)
      values[static_cast<std::size_t>(((p / items.inner) * target.count + g) * items.inner +
                                      p % items.inner)] =
          items.at(x, groups.first[static_cast<std::size_t>(g)], p);
  c.allocate(0, shape);
  c.store(0, values);
  const auto put = [&](std::size_t i, const Ints& list) {
    if (i >= c.outputs()) return;
    c.allocate(i, {static_cast<std::int64_t>(list.size())});
    c.store(i, list);
  };
  put(1, groups.first);
  put(2, groups.inverse);
  put(3, groups.counts);
}

}  // namespace

void Unique::infer(InferContext& c) const {
  require_index_type(c, index_element_type, "index_element_type");
  require_index_type(c, count_element_type, "count_element_type");
  const auto& x = c.shape(0);
  const bool by_axis = c.has(1);
  Shape values = by_axis ? Shape() : Shape{Dim()};
  Dim items = by_axis || !x.known() ? Dim() : x.count();
  if (by_axis) {
    const auto axis = known_int(c, 1, "axis");
    if (x.ranked()) c.require(x.rank() > 0, "x is a scalar, wanted at least one axis");
    if (axis && x.ranked()) {
      const auto along = normalize_axis(*axis, x.rank(), "axis");
      items = x[along];
      values = x;
      values[along] = Dim(0, items.high());
    }
  } else if (items.known()) {
    values = Shape{Dim(0, items.size())};
  }
  const Dim found = Dim(0, items.high());
  c.set(0, c.element(0), values);
  if (c.outputs() > 1) c.set(1, index_element_type, Shape{found});
  if (c.outputs() > 2) c.set(2, index_element_type, Shape{items});
  if (c.outputs() > 3) c.set(3, count_element_type, Shape{found});
}

void Unique::evaluate(EvalContext& c) const {
  with_numbers(c, 0, [&](const auto& x) { unique(c, x, sorted); });
}

void SearchSorted::infer(InferContext& c) const {
  require_index_type(c, output_type, "output_type");
  const auto &rows = c.shape(0), &values = c.shape(1);
  c.set(0, output_type, values);
  if (!rows.ranked()) return;
  c.require(rows.rank() > 0, "sorted is a scalar, wanted at least one axis");
  if (!values.ranked() || rows.rank() == 1) return;
  c.require(values.rank() == rows.rank(), "values have shape {}, wanted rank {}", to_string(values),
            rows.rank());
  for (std::size_t i = 0; i + 1 < rows.rank(); ++i)
    c.require(rows[i].fits(values[i]), "sorted {} and values {} differ on axis {}", to_string(rows),
              to_string(values), i);
}

namespace {

/// Calls body with both inputs' elements, integers exactly; with doubles when one of them holds floats.
template <class F>
void with_both(EvalContext& c, std::size_t a, std::size_t b, const F& body) {
  if (is_float(c.in(a).element_type()) != is_float(c.in(b).element_type()))
    return body(c.doubles(a), c.doubles(b));
  with_numbers(c, a, [&](const auto& left) {
    with_numbers(c, b, [&](const auto& right) {
      using A = typename std::decay_t<decltype(left)>::value_type;
      using B = typename std::decay_t<decltype(right)>::value_type;
      if constexpr (std::is_floating_point_v<A> == std::is_floating_point_v<B>) body(left, right);
    });
  });
}

/// Where x belongs in a sorted row: before its equals, or after them.
template <class T, class X>
std::int64_t place_in(const T* row, std::size_t size, X x, bool after) {
  const auto less = [](auto a, auto b) {
    if constexpr (std::is_floating_point_v<T>)
      return a < b;
    else
      return std::cmp_less(a, b);
  };
  return (after ? std::upper_bound(row, row + size, x, less) : std::lower_bound(row, row + size, x, less)) -
         row;
}

}  // namespace

void SearchSorted::evaluate(EvalContext& c) const {
  const auto &rows = c.dims(0), &shape = c.dims(1);
  const auto size = static_cast<std::size_t>(rows.back());
  const auto per_row = static_cast<std::size_t>(rows.size() == 1 || shape.empty() ? 0 : shape.back());
  with_both(c, 0, 1, [&](const auto& sorted, const auto& values) {
    Ints out(values.size());
    StopPoints points(1 << 12);
    for (std::size_t i = 0; i < values.size(); points(), ++i)
      out[i] = place_in(sorted.data() + (per_row == 0 ? 0 : i / per_row * size), size, values[i], right_mode);
    c.store(0, out);
  });
}

void Bucketize::infer(InferContext& c) const {
  require_index_type(c, output_type, "output_type");
  require_rank(c, 1, 1, "boundaries");
  c.set(0, output_type, c.shape(0));
}

void Bucketize::evaluate(EvalContext& c) const {
  with_both(c, 0, 1, [&](const auto& x, const auto& bounds) {
    Ints out(x.size());
    StopPoints points(1 << 12);
    for (std::size_t i = 0; i < x.size(); points(), ++i)
      out[i] = place_in(bounds.data(), bounds.size(), x[i], !with_right_bound);
    c.store(0, out);
  });
}

void register_sorting(Registry& r) {
  r.add<TopK>();
  r.add<NonZero>();
  r.add<Unique>();
  r.add<SearchSorted>();
  r.add<Bucketize>();
}

}  // namespace lamina
