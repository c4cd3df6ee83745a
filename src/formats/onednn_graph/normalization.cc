/// Normalisations.
#include "ops/normalization.h"

#include "formats/onednn_graph/call.h"
#include "ops/elementwise.h"
#include "ops/reduction.h"

namespace lamina::onednn_graph {
namespace {

double epsilon_of(const Call& c) { return c.f("epsilon", 1e-5F); }

Values convert_batch_norm(const Call& c) {
  c.in(4);
  const auto x = c.to_channels_first(c.in(0));
  return {c.to_framework(c.add(BatchNormInference{c.f("epsilon")}, {x, c.in(1), c.in(2), c.in(3), c.in(4)}))};
}

/// Mean and variance over axes, under the shapes that the file says.
Values with_stats(const Call& c, ValueId y, ValueId x, const Ints& axes) {
  if (!c.flag("keep_stats", true)) return {y};
  const auto where = c.ints_constant(axes);
  const auto keep = ReduceMean{{true}};
  const auto mean = c.add(keep, {x, where});
  const auto variance = c.add(keep, {c.add(SquaredDifference{}, {x, mean}), where});
  Values out{y};
  for (const auto v : {mean, variance}) out.push_back(c.squeeze(v, axes));
  return out;
}

Values convert_layer_norm(const Call& c) {
  const auto x = c.in(0);
  const auto first = c.axis("begin_norm_axis", -1, x);
  Ints axes;
  for (auto a = first; a < static_cast<std::int64_t>(c.known_rank(x)); ++a) axes.push_back(a);
  const auto epsilon = epsilon_of(c);
  ValueId y;
  if (c.flag("use_affine", true))
    y = c.add(LayerNormalization{first, epsilon}, {x, c.in(1), c.in(2)});
  else
    y = c.add(MVN{true, epsilon}, {x, c.ints_constant(axes)});
  return with_stats(c, y, x, axes);
}

Values convert_rms_norm(const Call& c) {
  const auto x = c.in(0);
  const RMSNormalization op{c.axis("begin_norm_axis", -1, x), epsilon_of(c)};
  return {c.has(1) ? c.add(op, {x, c.in(1)}) : c.add(op, {x})};
}

Values convert_group_norm(const Call& c) {
  if (c.flag("keep_stats", true) && c.op().outputs.size() > 1) c.unsupported("keep_stats of groups");
  const auto x = c.to_channels_first(c.in(0));
  if (c.known_rank(x) < 2) c.fail("input 0 has shape {}, wanted channels", to_string(c.shape(x)));
  Values inputs{x};
  if (c.flag("use_affine", true)) {
    inputs.insert(inputs.end(), {c.in(1), c.in(2)});
  } else {
    const auto& channels = c.shape(x)[1];
    if (!channels.known()) c.unsupported("an unknown number of channels");
    const auto type = c.known_element(x);
    for (const double value : {1.0, 0.0})
      inputs.push_back(c.filled(c.number(value, type), c.ints_constant({channels.size()})));
  }
  return {c.to_framework(c.add(GroupNormalization{c.i("groups"), epsilon_of(c)}, std::move(inputs)))};
}

}  // namespace

void register_normalization(ConverterTable& t) {
  t.add("BatchNormInference", convert_batch_norm);
  t.add("GroupNorm", convert_group_norm);
  t.add("LayerNorm", convert_layer_norm);
  t.add("RMSNorm", convert_rms_norm);
}

}  // namespace lamina::onednn_graph
