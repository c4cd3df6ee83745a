/// Normalisations.
#include "ops/normalization.h"

#include "formats/caffe/call.h"
#include "ops/elementwise.h"
#include "ops/eval.h"
#include "ops/reduction.h"

namespace lamina::caffe {
namespace {

/// All axes but those of the batch and, with `by_channel`, of the channels.
Ints inner_axes(const Call& c, bool by_channel) {
  Ints axes;
  for (auto a = std::int64_t{by_channel ? 2 : 1}; a < static_cast<std::int64_t>(c.known_rank(c.in(0))); ++a)
    axes.push_back(a);
  return axes;
}

ValueId filled(const Call& c, std::size_t count, double value) {
  return c.floats({static_cast<std::int64_t>(count)}, Floats(count, value));
}

/// The statistics of the batch itself: what Caffe does where `use_global_stats` says false, in the test, too.
Values batch_statistics(const Call& c, double eps) {
  c.warn("use_global_stats is false: the statistics are those of each batch");
  auto axes = inner_axes(c, true);
  axes.insert(axes.begin(), 0);
  return {c.add(MVN{true, eps, MvnEpsMode::inside_sqrt}, {c.in(0), c.ints_constant(axes)})};
}

/// A sum of statistics, divided by the number that they were summed up with; 0 where that is 0.
ValueId statistic(const Call& c, std::size_t i, double factor) {
  const auto sum = c.vector(i);
  if (factor == 1) return c.constant(sum);
  auto values = to_floats(sum.to_aligned());
  for (auto& v : values) v = factor == 0 ? 0 : static_cast<float>(v * factor);
  return c.constant(Tensor::of<float>(sum.shape(), values));
}

Values convert_batch_norm(const Call& c) {
  const auto p = c.params("batch_norm_param");
  const auto eps = p.number("eps", 1e-5);
  if (!p.flag("use_global_stats", true)) return batch_statistics(c, eps);
  if (c.blobs() > 3) c.unsupported("a BatchNorm with {} blobs", c.blobs());
  double factor = 1;
  if (c.blob(1).count != c.blob(0).count)
    c.fail("blobs 0 and 1 have {} and {} values, wanted as many", c.blob(0).count, c.blob(1).count);
  if (c.blobs() > 2) {
    const auto scale = to_floats(c.tensor(2, {1}).to_aligned())[0];
    factor = scale == 0 ? 0 : 1 / static_cast<double>(scale);
  }
  const auto channels = c.blob(0).count;
  return {c.add(BatchNormInference{eps}, {c.in(0), filled(c, channels, 1), filled(c, channels, 0),
                                          statistic(c, 0, factor), statistic(c, 1, factor)})};
}

/// BN of forks: scale, shift, mean, variance; or a scale and shift that hold all of it.
Values convert_bn(const Call& c) {
  const auto eps = c.params("bn_param").number("eps", 1e-5);
  if (c.blobs() != 4 && c.blobs() != 2) c.blob(3);
  const auto blob = [&](std::size_t i) { return c.constant(c.vector(i)); };
  if (c.blobs() == 2) return {c.add(ScaleShift{1}, {c.in(0), blob(0), blob(1)})};
  return {c.add(BatchNormInference{eps}, {c.in(0), blob(0), blob(1), blob(2), blob(3)})};
}

/// Across channels, or within each over a square, where `k` has no effect.
Values convert_lrn(const Call& c) {
  const auto p = c.params("lrn_param");
  LRN op;
  op.size = p.count("local_size", 5);
  op.alpha = p.number("alpha", 1);
  op.beta = p.number("beta", 0.75);
  op.bias = p.number("k", 1);
  if (op.size < 1 || op.size % 2 == 0) c.fail("local_size is {}, wanted an odd number", op.size);
  const bool within = p.choice("norm_region", {"ACROSS_CHANNELS", "WITHIN_CHANNEL"}, 0) == 1;
  if (within) op.bias = 1;
  return {c.add(op, {c.in(0), c.ints_constant(within ? inner_axes(c, true) : Ints{1})})};
}

Values convert_mvn(const Call& c) {
  const auto p = c.params("mvn_param");
  const bool across = p.flag("across_channels", false);
  return {c.add(MVN{p.flag("normalize_variance", true), p.number("eps", 1e-9), MvnEpsMode::outside_sqrt},
                {c.in(0), c.ints_constant(inner_axes(c, !across))})};
}

/// SSD's: x / its length, over the channels or all, times a learned scale.
Values convert_normalize(const Call& c) {
  const auto p = c.params("norm_param");
  const auto axes = p.flag("across_spatial", true) ? inner_axes(c, false) : Ints{1};
  const auto y = c.add(NormalizeL2{p.number("eps", 1e-10), L2EpsMode::add}, {c.in(0), c.ints_constant(axes)});
  const auto scale = c.vector(0);
  if (p.flag("channel_shared", true) && scale.size() != 1)
    c.fail("blob 0 has {} values, wanted one that all channels share", scale.size());
  return {c.add(ScaleShift{1}, {y, c.constant(scale)})};
}

Values convert_grn(const Call& c) { return {c.add(GRN{c.params("grn_param").number("bias", 1)}, {c.in(0)})}; }

}  // namespace

void register_normalization(ConverterTable& t) {
  t.add("BN", convert_bn);
  t.add("BatchNorm", convert_batch_norm);
  t.add("GRN", convert_grn);
  t.add("LRN", convert_lrn);
  t.add("MVN", convert_mvn);
  t.add("Normalize", convert_normalize);
}

}  // namespace lamina::caffe
