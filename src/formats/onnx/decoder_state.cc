/// State that decoders carry from call to call: TensorScatter, CausalConvWithState.
#include "formats/onnx/build.h"
#include "formats/onnx/convert.h"
#include "formats/onnx/heads.h"
#include "ops/activation.h"
#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/gathering.h"
#include "ops/movement.h"
#include "ops/shaping.h"

namespace lamina::onnx {
namespace {

/// The update may be shorter along the axis, else it has the cache's sizes.
void check_update(const Call& c, const Shape& cache, const Shape& update, std::size_t axis) {
  for (std::size_t i = 0; i < cache.rank(); ++i) {
    if (i != axis && !cache[i].fits(update[i]))
      c.fail("an update of {} for a cache of {}", to_string(update), to_string(cache));
    if (i == axis && cache[i].known() && update[i].known() && update[i].size() > cache[i].size())
      c.fail("an update of {} for a cache of {}", to_string(update), to_string(cache));
  }
}

/// Places [N, 1..., T, 1] along the axis, as tuples of indices [N, D1..., T, axis + 1].
ValueId tuples(Call& c, ValueId update, ValueId places, std::int64_t axis) {
  const auto one = c.ints_constant({1});
  const auto target = c.concat({sizes_of(c, update, 0, axis + 1), one}, 0);
  Values parts;
  for (std::int64_t a = 0; a < axis; ++a) {
    Ints others;
    for (std::int64_t i = 0; i < axis + 2; ++i)
      if (i != a) others.push_back(i);
    parts.push_back(c.filled(c.unsqueeze(counted(c, size_of(c, update, a)), others), target));
  }
  parts.push_back(c.filled(places, target));
  return c.concat(std::move(parts), axis + 1);
}

/// Cache, update, where each sequence's update begins.
Values convert_tensor_scatter(Call& c) {
  const auto cache = c.in(0), update = c.in(1);
  const auto rank = c.known_rank(cache);
  check_rank(c, update, "the update", rank);
  const auto axis = c.axis(c.i("axis", -2), rank);
  if (axis == 0) c.fail("axis is that of the batch");
  check_update(c, c.type(cache).shape, c.type(update).shape, axis);
  const auto mode = c.s("mode", "linear");
  if (mode != "linear" && mode != "circular") c.fail("mode is \"{}\", wanted linear or circular", mode);
  const auto at = static_cast<std::int64_t>(axis);

  auto places = counted(c, size_of(c, update, at));
  if (c.has(2)) {
    check_rank(c, c.in(2), "write_indices", 1);
    const auto batch = c.type(cache).shape[0], given = c.type(c.in(2)).shape[0];
    if (!given.fits(batch))
      c.fail("write_indices has {} elements for a batch of {}", to_string(given), to_string(batch));
    // One sequence needs no axis of its own.
    const auto first = c.convert(c.in(2), ElementType::i64);
    places = add(c, places, batch.is(1) ? first : c.unsqueeze(first, {1}));
  }
  if (mode == "circular") places = c.add(FloorMod{}, {places, size_of(c, cache, at)});
  if (c.known_rank(places) == 1) return {c.add(ScatterUpdate{}, {cache, places, update, c.int_constant(at)})};
  Ints between;
  for (std::int64_t i = 1; i < at; ++i) between.push_back(i);
  between.push_back(at + 1);
  return {c.add(ScatterNDUpdate{}, {cache, tuples(c, update, c.unsqueeze(places, between), at), update})};
}

/// Input, weights [C, 1, K], bias, past state [N, C, K - 1].
Values convert_causal_conv(Call& c) {
  if (c.i("ndim", 1) != 1) c.unsupported("ndim {} is not supported", c.i("ndim", 1));
  check_rank(c, c.in(0), "the input", 3);
  check_rank(c, c.in(1), "the weights", 3);
  const auto weights = c.type(c.in(1)).shape;
  const auto kernel = weights[2], channels = weights[0];
  if (!kernel.known() || !channels.known()) c.unsupported("weights of an unknown size");
  if (kernel.size() < 1 || channels.size() < 1 || !weights[1].fits(1))
    c.fail("the weights are {}, wanted [channels, 1, 1 or more]", to_string(weights));
  const auto kept = kernel.size() - 1;
  auto x = c.in(0);
  if (!c.type(x).shape[1].fits(channels))
    c.fail("{} channels for weights of {}", to_string(c.type(x).shape[1]), channels.size());
  if (c.has(3)) {
    check_rank(c, c.in(3), "the past state", 3);
    if (!c.type(c.in(3)).shape[2].fits(kept))
      c.fail("the past state is {}, wanted {} positions", to_string(c.type(c.in(3)).shape), kept);
  }
  if (kept > 0) {
    const auto past =
        c.has(3) ? c.in(3)
                 : c.filled(c.number_like(0, x),
                            c.concat({sizes_of(c, x, 0, 1), c.ints_constant({channels.size(), kept})}, 0));
    x = c.concat({past, x}, 2);
  }
  Convolution op;
  op.groups = channels.size();
  op.strides = op.dilations = {1};
  op.pads_begin = op.pads_end = {0};
  auto y = c.add(op, c.has(2) ? Values{x, c.in(1), c.in(2)} : Values{x, c.in(1)});
  const auto activation = c.s("activation", "none");
  if (activation == "silu" || activation == "swish")
    y = c.add(Swish{}, {y});
  else if (activation != "none")
    c.fail("activation is \"{}\", wanted none, silu or swish", activation);
  // A state of no positions is the end of x, too.
  const auto length = size_of(c, x, 2);
  const auto present = c.add(Slice{}, {x, c.to_vector(subtract(c, length, c.int_constant(kept))),
                                       c.to_vector(length), c.ints_constant({1}), c.ints_constant({2})});
  return {y, present};
}

}  // namespace

void register_decoder_state(ConverterTable& t) {
  t.add("TensorScatter", convert_tensor_scatter);
  for (auto domain : {std::string_view(), kMicrosoft})
    t.add(domain, "CausalConvWithState", convert_causal_conv);
}

}  // namespace lamina::onnx
