#include "ops/reduction.h"

#include <cmath>
#include <limits>

#include "base/cancellation.h"
#include "base/parallel.h"
#include "graph/op_model.h"
#include "graph/permute.h"
#include "ops/operators.h"
#include "ops/require.h"
#include "ops/scalar.h"
#include "ops/walk.h"

namespace lamina {
namespace {

/// Row-major positions: element (k, r) is at kept[k] + reduced[r].
struct ReductionPlan {
  std::vector<std::int64_t> kept, reduced;
};

ReductionPlan plan(const EvalContext& c) {
  auto axes = axis_flags(c.ints(1), c.dims(0).size());
  ReductionPlan p;
  p.reduced = offsets_along(c.dims(0), axes);
  axes.flip();
  p.kept = offsets_along(c.dims(0), axes);
  return p;
}

/// Folds each set of elements with step(accumulator, element), ends with finish(accumulator, count).
template <class S, class Step, class Finish>
std::vector<S> fold(const ReductionPlan& p, const std::vector<S>& x, S start, const Step& step,
                    const Finish& finish) {
  std::vector<S> out(p.kept.size());
  const auto length = static_cast<std::int64_t>(p.reduced.size());
  parallel_for(static_cast<std::int64_t>(out.size()), 50'000 / std::max<std::int64_t>(length, 1),
               [&](std::int64_t begin, std::int64_t end) {
                 for (auto i = begin; i < end; ++i) {
                   S sum = start;
                   const S* from = x.data() + p.kept[static_cast<std::size_t>(i)];
                   for_pieces(p.reduced.size(), [&](std::size_t first, std::size_t last) {
                     for (auto r = first; r < last; ++r) sum = step(sum, from[p.reduced[r]]);
                   });
                   out[static_cast<std::size_t>(i)] = finish(sum, length);
                 }
               });
  return out;
}

template <class T, class Step, class Finish>
void reduce_as(EvalContext& c, T start, const Step& step, const Finish& finish) {
  if (c.in(0).size() == 0)  // whatever its other dimensions are
    return c.store(0, std::vector<T>(c.out().size(), finish(start, std::int64_t{0})));
  c.store(0, fold<T>(plan(c), c.numbers<T>(0), start, step, finish));
}

/// Reduces in the type T that the elements are computed in: integers exactly. start(T{}) is the neutral
/// element, step(accumulator, element) folds, finish(accumulator, count) ends.
template <class Start, class Step, class Finish>
void reduce(EvalContext& c, const Start& start, const Step& step, const Finish& finish) {
  with_number_type(c.in(0).element_type(),
                   [&]<class T>() { reduce_as<T>(c, static_cast<T>(start(T{})), step, finish); });
}

template <class Start, class Step>
void reduce(EvalContext& c, const Start& start, const Step& step) {
  reduce(c, start, step, [](auto sum, std::int64_t) { return sum; });
}

/// The scalar operator F as a step.
template <class F>
struct StepOf {
  double operator()(double a, double b) const { return F::real(a, b); }
  template <scalar::Whole T>
  T operator()(T a, T b) const {
    return F::integer(a, b);
  }
};

/// The neutral element, for every type the same.
template <int kValue>
struct Always {
  template <class T>
  T operator()(T) const {
    return kValue;
  }
};

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Runs f(first, stride, length) for every line along an axis, lines in parallel.
template <class F>
void for_each_line(const Dims& shape, std::size_t axis, const F& f) {
  const std::int64_t length = shape[axis], stride = volume(shape, axis + 1, shape.size());
  const std::int64_t lines = volume(shape, 0, axis) * stride;
  parallel_for(lines, 10'000 / std::max<std::int64_t>(length, 1), [&](std::int64_t begin, std::int64_t end) {
    for (auto i = begin; i < end; ++i) f(i / stride * stride * length + i % stride, stride, length);
  });
}

void infer_along_axis(InferContext& c, std::int64_t axis) {
  require_float(c, 0, "input");
  const auto& x = c.shape(0);
  if (x.ranked()) normalize_axis(axis, x.rank(), "axis");
  c.set(0, c.type(0));
}

/// Largest element and sum of exp(x - largest) of a line.
std::pair<double, double> exponent_sum(const std::vector<double>& x, std::int64_t first, std::int64_t stride,
                                       std::int64_t length) {
  double most = -kInfinity, sum = 0;
  StopPoints points;
  for (std::int64_t i = 0; i < length; points(), ++i)
    most = scalar::maximum(most, x[static_cast<std::size_t>(first + i * stride)]);
  for (std::int64_t i = 0; i < length; points(), ++i)
    sum += std::exp(x[static_cast<std::size_t>(first + i * stride)] - most);
  return {most, sum};
}

}  // namespace

void Reduction::infer(InferContext& c) const {
  const auto e = c.element(0), a = c.element(1);
  c.require(e == ElementType::undefined || is_float(e) || is_integer(e) || e == ElementType::boolean,
            "input is {}, wanted numbers", name_of(e));
  c.require(a == ElementType::undefined || is_integer(a), "axes are {}, wanted integers", name_of(a));
  require_rank(c, 1, 0, 1, "axes");
  const auto& x = c.shape(0);
  const auto axes = c.ints(1);
  if (!x.ranked()) return c.set(0, e, Shape());
  if (axes) return c.set(0, e, reduced_shape(x, axis_flags(*axes, x.rank()), keep_dims));
  if (keep_dims) return c.set(0, e, Shape::of_rank(x.rank()));
  const Dim count = c.shape(1).ranked() && c.shape(1).rank() == 0 ? Dim(1) : c.shape(1).count();
  if (!count.known()) return c.set(0, e, Shape());
  c.require(count.size() <= static_cast<std::int64_t>(x.rank()), "{} axes of an input with shape {}",
            count.size(), to_string(x));
  c.set(0, e, Shape::of_rank(x.rank() - static_cast<std::size_t>(count.size())));
}

void ReduceSum::evaluate(EvalContext& c) const { reduce(c, Always<0>(), StepOf<scalar::Add>()); }

void ReduceMean::evaluate(EvalContext& c) const {
  reduce(c, Always<0>(), StepOf<scalar::Add>(), [](auto sum, std::int64_t count) {
    if constexpr (std::is_same_v<decltype(sum), double>)
      return sum / static_cast<double>(count);
    else
      return scalar::truncated_div(sum, static_cast<decltype(sum)>(count));
  });
}

void ReduceMax::evaluate(EvalContext& c) const {
  const auto lowest = [&]<class T>(T) -> T {
    if constexpr (std::is_same_v<T, double>)
      return -kInfinity;
    else
      return integer_range<T>(c.out_element(0)).first;
  };
  reduce(c, lowest, StepOf<scalar::Maximum>());
}

void ReduceMin::evaluate(EvalContext& c) const {
  const auto highest = [&]<class T>(T) -> T {
    if constexpr (std::is_same_v<T, double>)
      return kInfinity;
    else
      return integer_range<T>(c.out_element(0)).second;
  };
  reduce(c, highest, StepOf<scalar::Minimum>());
}

void ReduceProd::evaluate(EvalContext& c) const { reduce(c, Always<1>(), StepOf<scalar::Multiply>()); }

void ReduceL1::evaluate(EvalContext& c) const {
  reduce(c, Always<0>(), []<class T>(T sum, T x) -> T {
    if constexpr (std::is_same_v<T, double>)
      return sum + std::fabs(x);
    else
      return scalar::wrap_add(sum, scalar::magnitude(x));
  });
}

void ReduceL2::evaluate(EvalContext& c) const {
  const auto squares = [](double s, double x) { return s + x * x; };
  const auto root = [](double s, std::int64_t) { return std::sqrt(s); };
  reduce_as<double>(c, 0.0, squares, root);
}

void ReduceLogicalAnd::evaluate(EvalContext& c) const {
  reduce(c, Always<1>(), []<class T>(T all, T x) -> T { return all != 0 && x != 0; });
}

void ReduceLogicalOr::evaluate(EvalContext& c) const {
  reduce(c, Always<0>(), []<class T>(T any, T x) -> T { return any != 0 || x != 0; });
}

void Softmax::infer(InferContext& c) const { infer_along_axis(c, axis); }

void Softmax::evaluate(EvalContext& c) const {
  auto x = c.doubles(0);
  for_each_line(c.dims(0), normalize_axis(axis, c.dims(0).size(), "axis"),
                [&](std::int64_t first, std::int64_t stride, std::int64_t length) {
                  const auto [most, sum] = exponent_sum(x, first, stride, length);
                  for (std::int64_t i = 0; i < length; ++i) {
                    auto& v = x[static_cast<std::size_t>(first + i * stride)];
                    v = std::exp(v - most) / sum;
                  }
                });
  c.store(0, x);
}

void LogSoftmax::infer(InferContext& c) const { infer_along_axis(c, axis); }

void LogSoftmax::evaluate(EvalContext& c) const {
  auto x = c.doubles(0);
  for_each_line(c.dims(0), normalize_axis(axis, c.dims(0).size(), "axis"),
                [&](std::int64_t first, std::int64_t stride, std::int64_t length) {
                  const auto [most, sum] = exponent_sum(x, first, stride, length);
                  for (std::int64_t i = 0; i < length; ++i) {
                    auto& v = x[static_cast<std::size_t>(first + i * stride)];
                    v = v - most - std::log(sum);
                  }
                });
  c.store(0, x);
}

Verdict Reduction::permute(PermuteContext& c) const {
  if (auto v = c.move_axes_input(1); !v) return v;
  if (keep_dims) return Verdict::yes();
  std::vector<bool> dropped(c.rank(), false);
  const auto axes = c.node().ints(1);
  for (auto axis : *axes) dropped[normalize_axis(axis, c.rank(), "axes")] = true;
  c.drop_axes(dropped);
  return Verdict::yes();
}

Verdict Softmax::permute(PermuteContext& c) const { return c.move_axis(*this); }
Verdict LogSoftmax::permute(PermuteContext& c) const { return c.move_axis(*this); }

void register_reduction(Registry& r) {
  r.add<ReduceSum>();
  r.add<ReduceMean>();
  r.add<ReduceMax>();
  r.add<ReduceMin>();
  r.add<ReduceProd>();
  r.add<ReduceL1>();
  r.add<ReduceL2>();
  r.add<ReduceLogicalAnd>();
  r.add<ReduceLogicalOr>();
  r.add<Softmax>();
  r.add<LogSoftmax>();
}

}  // namespace lamina
