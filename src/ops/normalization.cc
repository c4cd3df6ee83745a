#include "ops/normalization.h"

#include <cmath>

#include "base/cancellation.h"
#include "base/parallel.h"
#include "graph/op_model.h"
#include "graph/permute.h"
#include "ops/operators.h"
#include "ops/require.h"
#include "ops/walk.h"

namespace lamina {
namespace {

/// Groups of elements that are normalised together: element (g, i) is at groups[g] + members[i].
struct Groups {
  std::vector<std::int64_t> groups, members;
};

Groups groups_of(const Dims& shape, std::vector<bool> together) {
  Groups g;
  g.members = offsets_along(shape, together);
  together.flip();
  g.groups = offsets_along(shape, together);
  return g;
}

/// Calls f(first element, group) for every group, in parallel.
template <class F>
void for_each_group(const Groups& g, std::vector<double>& x, const F& f) {
  parallel_for(static_cast<std::int64_t>(g.groups.size()),
               10'000 / std::max<std::int64_t>(1, static_cast<std::int64_t>(g.members.size())),
               [&](std::int64_t begin, std::int64_t end) {
                 for (auto i = begin; i < end; ++i) f(x.data() + g.groups[static_cast<std::size_t>(i)]);
               });
}

struct Moments {
  double mean = 0, variance = 0;
};

/// Calls f(offset) for all members of a group, which may be many.
template <class F>
void for_each_member(const std::vector<std::int64_t>& members, const F& f) {
  for_pieces(members.size(), [&](std::size_t begin, std::size_t end) {
    for (auto i = begin; i < end; ++i) f(members[i]);
  });
}

Moments moments(const double* x, const std::vector<std::int64_t>& members) {
  Moments m;
  const auto n = static_cast<double>(members.size());
  for_each_member(members, [&](auto o) { m.mean += x[o]; });
  m.mean /= n;
  for_each_member(members, [&](auto o) { m.variance += (x[o] - m.mean) * (x[o] - m.mean); });
  m.variance /= n;
  return m;
}

/// Subtracts each group's mean and divides by divisor(variance).
template <class F>
void normalize_groups(const Groups& g, std::vector<double>& x, const F& divisor) {
  for_each_group(g, x, [&](double* first) {
    const auto m = moments(first, g.members);
    const double d = divisor(m.variance);
    for_each_member(g.members, [&](auto o) { first[o] = (first[o] - m.mean) / d; });
  });
}

/// Divides each group by divisor(sum of squares).
template <class F>
void scale_groups(const Groups& g, std::vector<double>& x, const F& divisor) {
  for_each_group(g, x, [&](double* first) {
    double sum = 0;
    for_each_member(g.members, [&](auto o) { sum += first[o] * first[o]; });
    const double d = divisor(sum);
    for_each_member(g.members, [&](auto o) { first[o] /= d; });
  });
}

std::vector<bool> last_axes(std::size_t rank, std::int64_t axis) {
  std::vector<bool> flags(rank);
  for (auto i = normalize_axis(axis, rank, "axis"); i < rank; ++i) flags[i] = true;
  return flags;
}

/// A list of one number per channel as a shape that broadcasts along axis 1.
Dims along_channels(std::int64_t channels, std::size_t rank) {
  Dims d(rank - 1, 1);
  d[0] = channels;
  return d;
}

std::vector<double> channel_values(const EvalContext& c, std::size_t i) {
  const auto& x = c.dims(0);
  return broadcast_values(c.doubles(i), along_channels(x[1], x.size()), x);
}

void infer_axes(InferContext& c) {
  require_float(c, 0, "input");
  require_integer(c, 1, "axes");
  require_rank(c, 1, 0, 1, "axes");
  const auto axes = c.ints(1);
  if (axes && c.shape(0).ranked()) axis_flags(*axes, c.shape(0).rank());
  c.set(0, c.type(0));
}

/// x of rank 2 or more, then `count` inputs of shape [C].
void infer_channels(InferContext& c, std::size_t count, const std::array<std::string_view, 4>& names) {
  require_float(c, 0, "input");
  require_rank(c, 0, 2, SIZE_MAX, "input");
  const auto& x = c.shape(0);
  for (std::size_t i = 1; i <= count; ++i) {
    require_float(c, i, names[i - 1]);
    require_shape(c, i, Shape{x.ranked() ? x[1] : Dim()}, names[i - 1]);
  }
  c.set(0, c.type(0));
}

/// Sums over a window of `size` along one axis: (size - 1) / 2 elements before, size / 2 after.
std::vector<double> window_sums(const std::vector<double>& x, const Dims& shape, std::size_t axis,
                                std::int64_t size) {
  const std::int64_t length = shape[axis], stride = volume(shape, axis + 1, shape.size());
  const std::int64_t before = std::min((size - 1) / 2, length), after = std::min(size / 2, length);
  std::vector<double> out(x.size());
  parallel_for(static_cast<std::int64_t>(x.size()), 10'000, [&](std::int64_t begin, std::int64_t end) {
    StopPoints points;
    for (auto i = begin; i < end; ++i) {
      points(before + after + 1);
      const auto at = i / stride % length;
      double sum = 0;
      for (auto k = std::max<std::int64_t>(0, at - before); k <= std::min(length - 1, at + after); ++k)
        sum += x[static_cast<std::size_t>(i + (k - at) * stride)];
      out[static_cast<std::size_t>(i)] = sum;
    }
  });
  return out;
}

/// What keeps a root or a divisor from 0.
void require_epsilon(const InferContext& c, double epsilon, std::string_view name = "epsilon") {
  c.require(std::isfinite(epsilon) && epsilon >= 0, "{} is {}, wanted a finite number of at least 0", name,
            epsilon);
}

}  // namespace

void BatchNormInference::infer(InferContext& c) const {
  require_epsilon(c, epsilon);
  infer_channels(c, 4, {"gamma", "beta", "mean", "variance"});
}

void BatchNormInference::evaluate(EvalContext& c) const {
  auto x = c.doubles(0);
  const auto gamma = c.doubles(1), beta = c.doubles(2), mean = c.doubles(3), variance = c.doubles(4);
  const std::size_t channels = gamma.size(),
                    inner = static_cast<std::size_t>(volume(c.dims(0), 2, c.dims(0).size()));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto k = i / inner % channels;
    x[i] = (x[i] - mean[k]) / std::sqrt(variance[k] + epsilon) * gamma[k] + beta[k];
  }
  c.store(0, x);
}

std::optional<Shape> scale_shift_operand(const Shape& x, const Shape& operand, std::int64_t axis) {
  if (!x.ranked() || !operand.ranked()) return std::nullopt;
  if (operand.rank() == 0) return operand;
  std::vector<Dim> dims(operand.dims().begin(), operand.dims().end());
  const auto first = normalize_axis(axis, x.rank(), "axis");
  if (first + dims.size() <= x.rank()) dims.resize(x.rank() - first, Dim(1));
  return Shape(std::move(dims));
}

void ScaleShift::infer(InferContext& c) const {
  require_float(c, 0, "input");
  for (std::size_t i = 1; i < 3; ++i) {
    if (!c.has(i)) continue;
    const std::string_view name = i == 1 ? "scale" : "shift";
    require_same_element(c, 0, i, name);
    const auto seen = scale_shift_operand(c.shape(0), c.shape(i), axis);
    if (!seen || one_element(c.shape(i))) continue;
    const auto both = broadcast(c.shape(0), *seen);
    c.require(both && both->fits(c.shape(0)), "{} has shape {}, wanted that of the axes of {} from {} on",
              name, to_string(c.shape(i)), to_string(c.shape(0)), axis);
  }
  c.set(0, c.type(0));
}

void ScaleShift::evaluate(EvalContext& c) const {
  auto x = c.doubles(0);
  const auto operand = [&](std::size_t i) {
    if (c.in(i).size() == 1) return std::vector<double>(x.size(), c.doubles(i)[0]);
    const auto seen = scale_shift_operand(Shape::of(c.dims(0)), Shape::of(c.dims(i)), axis);
    return broadcast_values(c.doubles(i), seen->sizes(), c.dims(0));
  };
  const auto scale = operand(1);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] *= scale[i];
  if (c.has(2)) {
    const auto shift = operand(2);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += shift[i];
  }
  c.store(0, x);
}

void LRN::infer(InferContext& c) const {
  c.require(size >= 1, "size is {}, wanted 1 or more", size);
  c.require(std::isfinite(alpha) && std::isfinite(beta) && std::isfinite(bias),
            "alpha, beta and bias are {}, {} and {}, wanted finite numbers", alpha, beta, bias);
  infer_axes(c);
}

void LRN::evaluate(EvalContext& c) const {
  auto x = c.doubles(0);
  auto sums = x;
  for (auto& v : sums) v *= v;
  const auto axes = axis_flags(c.ints(1), c.dims(0).size());
  double area = 1;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    if (!axes[a]) continue;
    sums = window_sums(sums, c.dims(0), a, size);
    area *= static_cast<double>(size);
  }
  for (std::size_t i = 0; i < x.size(); ++i) x[i] /= std::pow(bias + alpha / area * sums[i], beta);
  c.store(0, x);
}

void MVN::infer(InferContext& c) const {
  require_epsilon(c, eps);
  infer_axes(c);
}

void MVN::evaluate(EvalContext& c) const {
  auto x = c.doubles(0);
  normalize_groups(groups_of(c.dims(0), axis_flags(c.ints(1), c.dims(0).size())), x, [&](double variance) {
    if (!normalize_variance) return 1.0;
    return eps_mode == MvnEpsMode::inside_sqrt ? std::sqrt(variance + eps) : std::sqrt(variance) + eps;
  });
  c.store(0, x);
}

void NormalizeL2::infer(InferContext& c) const {
  require_epsilon(c, eps);
  infer_axes(c);
}

void NormalizeL2::evaluate(EvalContext& c) const {
  auto x = c.doubles(0);
  scale_groups(groups_of(c.dims(0), axis_flags(c.ints(1), c.dims(0).size())), x, [&](double sum) {
    return std::sqrt(eps_mode == L2EpsMode::add ? sum + eps : std::max(sum, eps));
  });
  c.store(0, x);
}

void LayerNormalization::infer(InferContext& c) const {
  require_epsilon(c, epsilon);
  require_float(c, 0, "input");
  const auto& x = c.shape(0);
  if (x.ranked()) normalize_axis(axis, x.rank(), "axis");
  for (std::size_t i = 1; i < 3; ++i) {
    if (!c.has(i)) continue;
    require_float(c, i, i == 1 ? "scale" : "bias");
    require_broadcast(c, i, x, i == 1 ? "scale" : "bias");
  }
  c.set(0, c.type(0));
}

void LayerNormalization::evaluate(EvalContext& c) const {
  auto x = c.doubles(0);
  const auto& shape = c.dims(0);
  normalize_groups(groups_of(shape, last_axes(shape.size(), axis)), x,
                   [&](double variance) { return std::sqrt(variance + epsilon); });
  const auto scale = broadcast_values(c.doubles(1), c.dims(1), shape);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] *= scale[i];
  if (c.has(2)) {
    const auto bias = broadcast_values(c.doubles(2), c.dims(2), shape);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += bias[i];
  }
  c.store(0, x);
}

void RMSNormalization::infer(InferContext& c) const {
  require_epsilon(c, epsilon);
  require_float(c, 0, "input");
  const auto& x = c.shape(0);
  if (x.ranked()) normalize_axis(axis, x.rank(), "axis");
  if (c.has(1)) {
    require_float(c, 1, "scale");
    require_broadcast(c, 1, x, "scale");
  }
  c.set(0, c.type(0));
}

void RMSNormalization::evaluate(EvalContext& c) const {
  auto x = c.doubles(0);
  const auto groups = groups_of(c.dims(0), last_axes(c.dims(0).size(), axis));
  const auto n = static_cast<double>(groups.members.size());
  scale_groups(groups, x, [&](double sum) { return std::sqrt(sum / n + epsilon); });
  if (c.has(1)) {
    const auto scale = broadcast_values(c.doubles(1), c.dims(1), c.dims(0));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] *= scale[i];
  }
  c.store(0, x);
}

void GroupNormalization::infer(InferContext& c) const {
  require_epsilon(c, epsilon);
  infer_channels(c, 2, {"scale", "bias"});
  c.require(num_groups >= 1, "num_groups is {}, wanted 1 or more", num_groups);
  const auto& x = c.shape(0);
  if (x.ranked() && x[1].known())
    c.require(x[1].size() % num_groups == 0, "{} channels in {} groups, wanted a multiple", x[1].size(),
              num_groups);
}

void GroupNormalization::evaluate(EvalContext& c) const {
  auto x = c.doubles(0);
  const auto& shape = c.dims(0);
  const Dims grouped{shape[0] * num_groups, static_cast<std::int64_t>(x.size()) / (shape[0] * num_groups)};
  normalize_groups(groups_of(grouped, {false, true}), x,
                   [&](double variance) { return std::sqrt(variance + epsilon); });
  const auto scale = channel_values(c, 1), bias = channel_values(c, 2);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = x[i] * scale[i] + bias[i];
  c.store(0, x);
}

void GRN::infer(InferContext& c) const {
  require_epsilon(c, bias, "bias");
  require_float(c, 0, "input");
  require_rank(c, 0, 2, SIZE_MAX, "input");
  c.set(0, c.type(0));
}

void GRN::evaluate(EvalContext& c) const {
  auto x = c.doubles(0);
  std::vector<bool> channels(c.dims(0).size());
  channels[1] = true;
  scale_groups(groups_of(c.dims(0), channels), x, [&](double sum) { return std::sqrt(sum + bias); });
  c.store(0, x);
}

Verdict MVN::permute(PermuteContext& c) const { return c.move_axes_input(1); }
Verdict NormalizeL2::permute(PermuteContext& c) const { return c.move_axes_input(1); }

void register_normalization(Registry& r) {
  r.add<BatchNormInference>();
  r.add<ScaleShift>();
  r.add<LRN>();
  r.add<MVN>();
  r.add<NormalizeL2>();
  r.add<LayerNormalization>();
  r.add<RMSNormalization>();
  r.add<GroupNormalization>();
  r.add<GRN>();
}

}  // namespace lamina
