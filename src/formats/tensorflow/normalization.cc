/// Batch normalisation, with its own statistics or given ones, LRN, BiasAdd.
#include "ops/normalization.h"

#include <cmath>

#include "formats/tensorflow/layout.h"
#include "ops/elementwise.h"
#include "ops/reduction.h"

namespace lamina::tensorflow {
namespace {

/// How many spatial axes: 5 dimensions, or a format that says so, are a volume.
Layout layout_of(const Call& c, ValueId x) {
  const auto format = c.s("data_format", "");
  const bool volume = format == "NDHWC" || format == "NCDHW" || c.rank(x) == std::size_t{5};
  return read_layout(c, volume ? 3 : 2);
}

/// [C] along the channel axis.
ValueId along_channels(Call& c, ValueId v, const Layout& layout) {
  if (layout.channels_last) return v;
  Ints pattern(layout.spatial + 1, 1);
  pattern[0] = -1;
  if (const auto& shape = c.shape(v); shape.known() && shape.rank() == 1) pattern[0] = shape.sizes()[0];
  return c.reshape(v, pattern);
}

/// The numbers of all axes except the channels' axis.
ValueId other_axes(Call& c, const Layout& layout) {
  Ints axes;
  for (std::size_t i = 0; i < layout.rank(); ++i)
    if (i != layout.channel_axis()) axes.push_back(static_cast<std::int64_t>(i));
  return c.ints_constant(axes);
}

/// The batch's own mean and variance; outputs 1 and 2 are what they make of the running ones.
Values normalize_by_batch(Call& c, ValueId x, const Layout& layout, double epsilon) {
  const auto axes = other_axes(c, layout);
  ReduceMean mean_op;
  mean_op.keep_dims = true;
  const auto mean = c.add(mean_op, {x, axes});
  const auto centred = c.add(Subtract{}, {x, mean});
  const auto variance = c.add(mean_op, {c.add(Multiply{}, {centred, centred}), axes});
  const auto deviation = c.add(Sqrt{}, {c.add(Add{}, {variance, c.number_like(epsilon, x)})});
  const auto scaled =
      c.add(Multiply{}, {c.add(Divide{}, {centred, deviation}), along_channels(c, c.in(1), layout)});
  const auto y = c.add(Add{}, {scaled, along_channels(c, c.in(2), layout)});

  const auto all = c.add(ReduceProd{}, {c.shape_of(x), c.ints_constant({0})});
  const auto channels = c.pick(c.shape_of(x), 0, static_cast<std::int64_t>(layout.channel_axis()));
  const auto count = c.convert(c.add(Divide{}, {all, channels}), c.known_element(x));
  const auto one = c.number_like(1, x);
  const auto less = c.add(Maximum{}, {c.add(Subtract{}, {count, one}), one});
  const auto unbiased = c.add(Divide{}, {c.add(Multiply{}, {variance, count}), less});
  const auto factor = c.f("exponential_avg_factor", 1);
  const auto running = [&](ValueId of_batch, std::size_t input) {
    const auto now = c.reshape(of_batch, Ints{-1});
    if (factor == 1) return now;
    return c.add(Add{}, {c.add(Multiply{}, {now, c.number_like(factor, x)}),
                         c.add(Multiply{}, {c.in(input), c.number_like(1 - factor, x)})});
  };
  return {y, running(mean, 3), running(unbiased, 4), c.reshape(mean, Ints{-1}),
          c.reshape(variance, Ints{-1})};
}

/// x, scale, offset, mean, variance. Half-precision data has its parameters in f32.
Values convert_fused_batch_norm(Call& c) {
  const auto layout = layout_of(c, c.in(0));
  const auto epsilon = c.f("epsilon", 1e-4);
  const auto type = c.known_element(c.in(0)), inside = c.known_element(c.in(1));
  const auto x = c.convert(c.in(0), inside);
  Values out;
  if (c.flag("is_training", true)) {
    out = normalize_by_batch(c, x, layout, epsilon);
  } else {
    BatchNormInference op;
    op.epsilon = epsilon;
    const auto y = c.add(op, {to_channels_first(c, x, layout), c.in(1), c.in(2), c.in(3), c.in(4)});
    out = {to_framework(c, y, layout), c.in(3), c.in(4), c.in(3), c.in(4)};
  }
  out[0] = c.convert(out[0], type);
  if (c.op() == "FusedBatchNormV3") out.push_back(out[4]);
  return out;
}

/// t, mean, variance, beta, gamma; gamma counts only with scale_after_normalization.
Values convert_global_batch_norm(Call& c) {
  const Layout layout;
  BatchNormInference op;
  op.epsilon = c.f("variance_epsilon", 1e-3);
  auto gamma = c.in(4);
  if (!c.flag("scale_after_normalization")) gamma = c.filled(c.number_like(1, c.in(0)), c.shape_of(c.in(1)));
  const auto y = c.add(op, {to_channels_first(c, c.in(0), layout), gamma, c.in(3), c.in(1), c.in(2)});
  return {to_framework(c, y, layout)};
}

/// The sum is not divided by the number of channels there. OpenVINO cuts a bias off to an integer: another
/// one comes out of the power.
Values convert_lrn(Call& c) {
  const Layout layout;
  const auto radius = c.i("depth_radius", 5);
  if (radius < 0 || radius > INT32_MAX) c.fail("depth_radius is {}, wanted 0 or more", radius);
  LRN op;
  op.size = 2 * radius + 1;
  op.alpha = c.f("alpha", 1) * static_cast<double>(op.size);
  op.beta = c.f("beta", 0.5);
  op.bias = c.f("bias", 1);
  double factor = 1;
  if (op.bias > 0 && op.bias != std::floor(op.bias)) {
    factor = std::pow(op.bias, -op.beta);
    op.alpha /= op.bias;
    op.bias = 1;
  }
  auto y = c.add(op, {to_channels_first(c, c.in(0), layout), c.ints_constant({1})});
  if (factor != 1) y = c.add(Multiply{}, {y, c.number_like(factor, y)});
  return {to_framework(c, y, layout)};
}

/// The bias lies along the last axis, or along axis 1.
Values convert_bias_add(Call& c) {
  const auto format = c.s("data_format", "NHWC");
  auto bias = c.in(1);
  if (const auto& shape = c.shape(bias); shape.ranked() && shape.rank() != 1)
    c.fail("the bias is {}, wanted rank 1", to_string(shape));
  if (format.starts_with("NC")) {
    const auto rank = c.known_rank(c.in(0));
    if (rank < 2) c.fail("the input has rank {}, wanted 2 or more", rank);
    Layout layout{false, rank - 2};
    bias = along_channels(c, bias, layout);
  }
  return {c.add(Add{}, {c.in(0), bias})};
}

}  // namespace

void register_normalization(ConverterTable& t) {
  t.add("BatchNormWithGlobalNormalization", convert_global_batch_norm);
  t.add("BiasAdd", convert_bias_add);
  t.add("BiasAddV1", convert_bias_add);
  t.add("FusedBatchNorm", convert_fused_batch_norm);
  t.add("FusedBatchNormV2", convert_fused_batch_norm);
  t.add("FusedBatchNormV3", convert_fused_batch_norm);
  t.add("LRN", convert_lrn);
}

}  // namespace lamina::tensorflow
