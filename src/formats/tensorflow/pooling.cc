/// MaxPool, AvgPool and their kin.
#include "ops/pooling.h"

#include <algorithm>

#include "formats/tensorflow/layout.h"
#include "ops/elementwise.h"
#include "ops/generation.h"
#include "ops/reduction.h"

namespace lamina::tensorflow {
namespace {

/// A number for each axis, from an attribute or (in the newer operators) an input.
Ints window_list(const Call& c, const Layout& layout, std::string_view attribute, std::size_t input) {
  auto list = c.ints(attribute);
  if (list.empty() && c.inputs() > input) list = c.wanted_ints(c.in(input), attribute);
  if (list.size() != layout.rank())
    c.fail("{} has {} values, wanted {}", attribute, list.size(), layout.rank());
  for (auto v : list)
    if (v < 1 || v > INT32_MAX) c.fail("{} has {}, wanted 1 to {}", attribute, v, INT32_MAX);
  return list;
}

bool over_channels(const Layout& layout, const Ints& kernel, const Ints& strides) {
  const auto channel = layout.channel_axis();
  return kernel[channel] != 1 || strides[channel] != 1;
}

void set_exclude_pad(MaxPool&) {}
/// SAME pads are no part of the mean.
void set_exclude_pad(AvgPool& op) { op.exclude_pad = true; }

/// Windows that reach over channels: those are a spatial axis then, and the picture has one channel.
template <class Pool>
Values pool_everything(Call& c, const Layout& layout, const Ints& kernel, const Ints& strides) {
  if (layout.spatial != 2 || kernel[0] != 1 || strides[0] != 1)
    c.unsupported("windows [{}] over batch or volumes and channels", fmt::join(kernel, ","));
  Pool op;
  op.kernel.assign(kernel.begin() + 1, kernel.end());
  op.strides.assign(strides.begin() + 1, strides.end());
  const auto padding = c.s("padding", "");
  if (padding != "SAME" && padding != "VALID") c.unsupported("padding \"{}\" over channels", padding);
  op.auto_pad = padding == "SAME" ? AutoPad::same_upper : AutoPad::valid;
  set_exclude_pad(op);
  return {c.squeeze(c.add(op, {c.unsqueeze(c.in(0), {1})}), {1})};
}

template <class Pool, std::size_t kSpatial>
Values convert_pool(Call& c) {
  const auto layout = read_layout(c, kSpatial);
  const auto kernel = window_list(c, layout, "ksize", 1), strides = window_list(c, layout, "strides", 2);
  if (const auto& x = c.shape(c.in(0)); x.ranked() && x.rank() != layout.rank())
    c.fail("the input is {}, wanted rank {}", to_string(x), layout.rank());
  if (over_channels(layout, kernel, strides)) return pool_everything<Pool>(c, layout, kernel, strides);
  if (kernel[0] != 1 || strides[0] != 1) c.unsupported("windows over the batch");
  Pool op;
  op.kernel = spatial_part(layout, kernel);
  op.strides = spatial_part(layout, strides);
  read_padding(c, layout, op);
  set_exclude_pad(op);
  const auto x = to_channels_first(c, c.in(0), layout);
  return {to_framework(c, c.add(op, {x}), layout)};
}

/// Output 1 counts elements in the order of N, H, W, C; in ours of H, W only.
Values convert_max_pool_with_argmax(Call& c) {
  const Layout layout;
  const auto type = c.type_attribute("Targmax", ElementType::i64);
  MaxPool op;
  op.kernel = read_spatial(c, layout, "ksize", true);
  op.strides = read_spatial(c, layout, "strides", true);
  read_padding(c, layout, op);
  op.axis = 2;
  const auto outputs = c.add_all(op, {to_channels_first(c, c.in(0), layout)}, 2);
  auto at = to_framework(c, outputs[1], layout);
  const auto shape = c.shape_of(c.in(0));
  const auto channels = c.pick(shape, 0, 3);
  const auto range = [&](ValueId n) {
    return c.add(Range{ElementType::i64}, {c.int_constant(0), n, c.int_constant(1)});
  };
  at = c.add(Add{}, {c.add(Multiply{}, {at, channels}), range(channels)});
  if (c.flag("include_batch_in_index")) {
    const auto picture = c.add(ReduceProd{}, {c.part(shape, 1, 4), c.ints_constant({0})});
    const auto batch = c.unsqueeze(range(c.pick(shape, 0, 0)), {1, 2, 3});
    at = c.add(Add{}, {at, c.add(Multiply{}, {batch, picture})});
  }
  return {to_framework(c, outputs[0], layout), c.convert(at, type)};
}

}  // namespace

void register_pooling(ConverterTable& t) {
  t.add("AvgPool", convert_pool<AvgPool, 2>);
  t.add("AvgPool3D", convert_pool<AvgPool, 3>);
  t.add("MaxPool", convert_pool<MaxPool, 2>);
  t.add("MaxPool3D", convert_pool<MaxPool, 3>);
  t.add("MaxPoolV2", convert_pool<MaxPool, 2>);
  t.add("MaxPoolWithArgmax", convert_max_pool_with_argmax);
}

}  // namespace lamina::tensorflow
