/// Normalisations.
#include "ops/normalization.h"

#include "formats/onnx/build.h"
#include "formats/onnx/convert.h"
#include "ops/elementwise.h"
#include "ops/movement.h"
#include "ops/reduction.h"
#include "ops/shaping.h"

namespace lamina::onnx {
namespace {

template <class R>
ValueId reduce_over(Call& c, ValueId x, ValueId axes, bool keep) {
  R op;
  op.keep_dims = keep;
  return c.add(op, {x, axes});
}

/// [C] as [C, 1, 1, ...] that broadcasts along axis 1 of x.
ValueId by_channel(Call& c, ValueId v, ValueId x) {
  const auto rank = c.known_rank(x);
  Ints axes;
  for (std::size_t a = 1; a + 1 < rank; ++a) axes.push_back(static_cast<std::int64_t>(a));
  return c.unsqueeze(v, axes);
}

/// Batch normalisation with the statistics of this batch, which also update the running ones.
Values train_batch_normalization(Call& c, const Values& in, double epsilon) {
  const auto x = in[0], momentum = c.number_like(c.f("momentum", 0.9f), in[3]);
  Ints axes;
  for (std::size_t a = 0; a < c.known_rank(x); ++a)
    if (a != 1) axes.push_back(static_cast<std::int64_t>(a));
  const auto over = c.ints_constant(axes);
  const auto mean = reduce_over<ReduceMean>(c, x, over, false);
  const auto centred = subtract(c, x, by_channel(c, mean, x));
  const auto variance = reduce_over<ReduceMean>(c, multiply(c, centred, centred), over, false);
  const auto rest = subtract(c, c.number_like(1, in[3]), momentum);
  const auto running = [&](ValueId old, ValueId now) {
    return add(c, multiply(c, old, momentum), multiply(c, c.convert(now, c.known_element(old)), rest));
  };
  const auto y = c.add(BatchNormInference{epsilon}, {x, in[1], in[2], mean, variance});
  return {y, running(c.in(3), mean), running(c.in(4), variance)};
}

Values convert_batch_normalization(Call& c) {
  if (c.version() < 9 && c.i("spatial", 1) == 0) c.unsupported("spatial = 0 is not supported");
  Values in;
  const auto type = c.known_element(c.in(0));
  for (std::size_t i = 0; i < 5; ++i) in.push_back(c.convert(c.in(i), type));
  const auto epsilon = c.f("epsilon", 1e-5f);
  if (c.version() >= 14 && c.flag("training_mode")) {
    if (c.element(c.in(3)) != type) c.unsupported("training with mixed element types");
    return train_batch_normalization(c, in, epsilon);
  }
  if (c.wants(1)) c.unsupported("training is not supported");
  return {c.add(BatchNormInference{epsilon}, std::move(in))};
}

Values convert_instance_normalization(Call& c) {
  const auto x = c.in(0);
  const auto y = instance_normalize(c, x, c.f("epsilon", 1e-5f));
  return {add(c, multiply(c, y, by_channel(c, c.in(1), x)), by_channel(c, c.in(2), x))};
}

/// The mean and the inverse standard deviation, which only training reads.
void add_statistics(Call& c, ValueId x, std::int64_t axis, double epsilon, Values& out) {
  const auto rank = c.known_rank(x);
  const auto wide = c.convert(x, c.i("stash_type", 1) == 1 ? ElementType::f32 : c.known_element(x));
  const auto axes = c.axes_from(x, static_cast<std::int64_t>(c.axis(axis, rank)));
  const auto mean = reduce_over<ReduceMean>(c, wide, axes, true);
  const auto centred = subtract(c, wide, mean);
  const auto variance = reduce_over<ReduceMean>(c, multiply(c, centred, centred), axes, true);
  const auto deviation = c.add(Sqrt{}, {add(c, variance, c.number_like(epsilon, variance))});
  out.push_back(mean);
  out.push_back(divide(c, c.number_like(1, deviation), deviation));
}

Values convert_layer_normalization(Call& c) {
  LayerNormalization op{c.i("axis", -1), c.f("epsilon", 1e-5f)};
  const auto type = c.known_element(c.in(0));
  Values inputs{c.in(0), c.convert(c.in(1), type)};
  if (c.has(2)) inputs.push_back(c.convert(c.in(2), type));
  Values out{c.add(op, std::move(inputs))};
  if (c.wants(1) || c.wants(2)) add_statistics(c, c.in(0), op.axis, op.epsilon, out);
  return out;
}

Values convert_rms_normalization(Call& c) {
  const auto type = c.known_element(c.in(0)), scale_type = c.known_element(c.in(1));
  if (type != scale_type) c.unsupported("a scale of another type than the input");
  return {c.add(RMSNormalization{c.i("axis", -1), c.f("epsilon", 1e-5f)}, {c.in(0), c.in(1)})};
}

/// Before opset 21 scale and bias have one element per group.
Values convert_group_normalization(Call& c) {
  const auto x = c.in(0);
  const auto groups = c.i("num_groups", 0);
  if (groups <= 0) c.fail("num_groups is {}, wanted 1 or more", groups);
  auto scale = c.in(1), bias = c.in(2);
  if (c.version() < 21) {
    if (c.known_rank(x) < 2 || !c.type(x).shape[1].known()) c.unsupported("an unknown number of channels");
    const auto target = c.ints_constant({groups, c.type(x).shape[1].size() / groups});
    for (auto* v : {&scale, &bias})
      *v = c.reshape(c.add(Broadcast{}, {c.unsqueeze(*v, {1}), target}), Ints{-1});
  }
  return {c.add(GroupNormalization{groups, c.f("epsilon", 1e-5f)}, {x, scale, bias})};
}

Values convert_mean_variance_normalization(Call& c) {
  MVN op;
  op.eps = 1e-9;
  op.eps_mode = MvnEpsMode::outside_sqrt;
  return {c.add(op, {c.in(0), c.ints_constant(c.ints("axes", {0, 2, 3}))})};
}

/// x / norm, 0 where the norm is 0.
Values convert_lp_normalization(Call& c) {
  const auto x = c.in(0), axes = c.ints_constant({c.i("axis", -1)});
  const auto p = c.i("p", 2);
  if (p != 1 && p != 2) c.fail("p is {}, wanted 1 or 2", p);
  const auto norm =
      p == 1 ? reduce_over<ReduceL1>(c, x, axes, true) : reduce_over<ReduceL2>(c, x, axes, true);
  const auto nothing = c.add(Equal{}, {norm, c.number_like(0, norm)});
  return {divide(c, x, c.add(Select{}, {nothing, c.number_like(1, norm), norm}))};
}

Values convert_lrn(Call& c) {
  LRN op{c.f("alpha", 1e-4f), c.f("beta", 0.75), c.f("bias", 1), c.i("size", 0)};
  if (op.size <= 0) c.fail("size is {}, wanted 1 or more", op.size);
  return {c.add(op, {c.in(0), c.ints_constant({1})})};
}

}  // namespace

ValueId instance_normalize(Call& c, ValueId x, double epsilon) {
  MVN op;
  op.eps = epsilon;
  return c.add(op, {x, c.axes_from(x, 2)});
}

void register_normalization(ConverterTable& t) {
  t.add("BatchNormalization", convert_batch_normalization);
  t.add("GroupNormalization", convert_group_normalization);
  t.add("InstanceNormalization", convert_instance_normalization);
  t.add("LRN", convert_lrn);
  t.add("LayerNormalization", convert_layer_normalization);
  t.add("LpNormalization", convert_lp_normalization);
  t.add("MeanVarianceNormalization", convert_mean_variance_normalization);
  t.add("RMSNormalization", convert_rms_normalization);
}

}  // namespace lamina::onnx
