/// Pooling as Caffe has it: the number of windows is rounded up, windows end at the padding's, and a mean
/// counts the padding, but not what a last window has beyond it.
#include "ops/pooling.h"

#include "formats/caffe/call.h"
#include "ops/elementwise.h"
#include "ops/gathering.h"
#include "ops/generation.h"
#include "ops/movement.h"
#include "ops/reduction.h"
#include "ops/resize.h"
#include "ops/shaping.h"

namespace lamina::caffe {
namespace {

struct Pool {
  Ints kernel, strides, pads;
  bool ceil = true;
  bool padded() const { return pads[0] != 0 || pads[1] != 0; }
};

std::array<std::int64_t, 2> pair(const Call& c, const Params& p, std::string_view name, std::string_view stem,
                                 std::int64_t fallback) {
  const auto both = p.counts(name);
  if (both.size() > 2) c.fail("{} has {} values, wanted 1 or 2", name, both.size());
  const auto h = both.empty() ? fallback : both[0], w = both.size() > 1 ? both[1] : h;
  return {p.count(std::string(stem) + "_h", h), p.count(std::string(stem) + "_w", w)};
}

Pool read_pool(const Call& c, const Params& p) {
  Pool pool;
  const auto kernel = pair(c, p, "kernel_size", "kernel", 0), stride = pair(c, p, "stride", "stride", 1),
             pad = pair(c, p, "pad", "pad", 0);
  pool.kernel.assign(kernel.begin(), kernel.end());
  pool.strides.assign(stride.begin(), stride.end());
  pool.pads.assign(pad.begin(), pad.end());
  pool.ceil = p.flag("ceil_mode", p.choice("round_mode", {"CEIL", "FLOOR"}, 0) == 0);
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  for (std::size_t i = 0; i < 2; ++i) {
    if (pool.kernel[i] < 1 || pool.kernel[i] > kMost)
      c.fail("kernel_size is {}, wanted 1 or more", pool.kernel[i]);
    if (pool.strides[i] < 1 || pool.strides[i] > kMost)
      c.fail("stride is {}, wanted 1 or more", pool.strides[i]);
    if (pool.pads[i] >= pool.kernel[i])
      c.fail("pad is {}, wanted less than the kernel's {}", pool.pads[i], pool.kernel[i]);
  }
  return pool;
}

/// A window that is larger than bottom and padding is one all the same, as large as these, unless that is too
/// far from it.
void fit_kernel(const Call& c, Pool& p) {
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& dim = c.shape(c.in(0))[i + 2];
    if (!dim.known()) continue;
    const auto room = dim.size() + 2 * p.pads[i];
    if (p.kernel[i] <= room) continue;
    if (!p.ceil || p.kernel[i] - room >= p.strides[i])
      c.fail("the kernel {} is larger than the bottom {} with its pad {}", p.kernel[i], dim.size(),
             p.pads[i]);
    p.kernel[i] = room;
  }
}

/// How many windows an axis of that size has.
std::int64_t windows(const Pool& p, std::size_t axis, std::int64_t size) {
  const auto room = size + 2 * p.pads[axis] - p.kernel[axis], stride = p.strides[axis];
  auto count = (p.ceil ? (room + stride - 1) / stride : room / stride) + 1;
  if (p.padded() && (count - 1) * stride >= size + p.pads[axis]) --count;  // it would begin in the padding
  return count;
}

/// Whether the last window of some axis has elements beyond the padding, or one less is there than usual:
/// else rounding down says the same.
bool rounds_up(const Call& c, const Pool& p) {
  if (!p.ceil) return false;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& dim = c.shape(c.in(0))[i + 2];
    if (p.strides[i] != 1 && !dim.known()) return true;
    if (dim.known() && (dim.size() + 2 * p.pads[i] - p.kernel[i]) % p.strides[i] != 0) return true;
  }
  return false;
}

void put(const Pool& p, Window& window) {
  window.strides = p.strides;
  window.pads_begin = window.pads_end = p.pads;
}

/// The second top: where each maximum is in its channel, as a number.
Values max_pool(const Call& c, const Pool& p) {
  MaxPool op;
  put(p, op);
  op.kernel = p.kernel;
  op.axis = 2;
  if (rounds_up(c, p)) op.rounding_type = p.padded() ? RoundingType::ceil_torch : RoundingType::ceil;
  if (c.outputs() < 2) return {c.add(std::move(op), {c.in(0)})};
  const auto both = c.add_all(std::move(op), {c.in(0)}, 2);
  return {both[0], c.add(Convert{ElementType::f32}, {both[1]})};
}

/// How far windows reach over the end of an axis of that size, never beyond the padding.
std::int64_t overhang(const Pool& p, std::size_t axis, std::int64_t size) {
  const auto reach = (windows(p, axis, size) - 1) * p.strides[axis] + p.kernel[axis];
  return std::min(reach, size + 2 * p.pads[axis]) - size - p.pads[axis];
}

/// The overhang of both axes of a bottom whose sizes are not known, in operators; pads of all four axes.
ValueId overhang(const Call& c, const Pool& p) {
  const auto plus = [&](ValueId v, auto&& of_axis) {
    return c.add(Add{}, {v, c.ints_constant({of_axis(0), of_axis(1)})});
  };
  const auto one = [](std::size_t) { return std::int64_t{1}; };
  const auto sizes = c.slice(c.shape_of(c.in(0)), 0, 2, 4), strides = c.ints_constant(p.strides);
  const auto rounded_up = [&](auto&& room) {  // (size + room) / stride
    const auto more = plus(sizes, [&](std::size_t i) { return room(i) + p.strides[i] - 1; });
    return c.add(Divide{}, {more, strides});
  };
  const auto all = plus(rounded_up([&](std::size_t i) { return 2 * p.pads[i] - p.kernel[i]; }), one);
  // No window begins in the padding.
  const auto count = c.add(Minimum{}, {all, rounded_up([&](std::size_t i) { return p.pads[i]; })});
  const auto reach =
      plus(c.add(Multiply{}, {count, strides}), [&](std::size_t i) { return p.kernel[i] - p.strides[i]; });
  const auto frame = plus(sizes, [&](std::size_t i) { return 2 * p.pads[i]; });
  const auto inner = plus(sizes, [&](std::size_t i) { return p.pads[i]; });
  const auto end = c.add(Subtract{}, {c.add(Minimum{}, {reach, frame}), inner});
  return c.add(Concat{0}, {c.ints_constant({0, 0}), end});
}

/// A mean over windows whose last one reaches over the padding divides by what lies within it: zeros are put
/// around as far as the windows reach, and then nothing is padded.
ValueId padded_mean(const Call& c, const Pool& p, AvgPool op) {
  const auto &h = c.shape(c.in(0))[2], &w = c.shape(c.in(0))[3];
  const auto end = h.known() && w.known()
                       ? c.ints_constant({0, 0, overhang(p, 0, h.size()), overhang(p, 1, w.size())})
                       : overhang(c, p);
  const auto x = c.add(Pad{}, {c.in(0), c.ints_constant({0, 0, p.pads[0], p.pads[1]}), end, c.number(0)});
  op.pads_begin = op.pads_end = {0, 0};
  op.rounding_type = RoundingType::ceil;
  return c.add(std::move(op), {x});
}

Values mean_pool(const Call& c, const Pool& p) {
  AvgPool op;
  put(p, op);
  op.kernel = p.kernel;
  if (!rounds_up(c, p)) return {c.add(std::move(op), {c.in(0)})};
  if (p.padded()) return {padded_mean(c, p, std::move(op))};
  op.rounding_type = RoundingType::ceil;
  return {c.add(std::move(op), {c.in(0)})};
}

Values convert_pooling(const Call& c) {
  const auto p = c.params("pooling_param");
  const auto kind = p.choice("pool", {"MAX", "AVE", "STOCHASTIC"}, 0);
  if (kind == 2) c.unsupported("stochastic pooling");
  if (c.known_rank(c.in(0)) != 4)
    c.fail("the bottom has shape {}, wanted rank 4", to_string(c.shape(c.in(0))));
  if (p.flag("global_pooling", false)) {
    const auto axes = c.ints_constant({2, 3});
    if (c.outputs() > 1) c.unsupported("positions of a global maximum");
    if (kind == 0) return {c.add(ReduceMax{{true}}, {c.in(0), axes})};
    return {c.add(ReduceMean{{true}}, {c.in(0), axes})};
  }
  auto pool = read_pool(c, p);
  fit_kernel(c, pool);
  return kind == 0 ? max_pool(c, pool) : mean_pool(c, pool);
}

/// The sizes that an Upsample makes, H and W.
std::array<std::int64_t, 2> upsampled(const Call& c, const Params& p, std::int64_t fallback) {
  const auto scale = p.count("scale", fallback);
  std::array<std::int64_t, 2> sizes{};
  for (std::size_t i = 0; i < 2; ++i) {
    const auto name = i == 0 ? "h" : "w";
    const auto own = p.count(std::string("scale_") + name, scale), size = c.size(c.in(0), i + 2);
    if (own < 1 || own > 4096) c.fail("scale is {}, wanted 1 to 4096", own);
    sizes[i] = p.count(std::string("upsample_") + name,
                       size * own - (p.flag(std::string("pad_out_") + name, false) ? 1 : 0));
    if (sizes[i] < 1 || sizes[i] > (1 << 24)) c.fail("asks for the size {}, wanted 1 or more", sizes[i]);
  }
  return sizes;
}

/// SegNet's: each element to the place in its channel that the mask of a pooling says, zeros elsewhere.
Values unpooled(const Call& c, const Params& p) {
  const auto sizes = upsampled(c, p, 2);
  const auto images = c.size(c.in(0), 0), channels = c.size(c.in(0), 1);
  const Dims flat{images, channels, sizes[0] * sizes[1]};
  const auto zeros = c.add(Broadcast{}, {c.number(0), c.ints_constant(flat)});
  const auto x = c.reshape(c.in(0), {images, channels, -1}),
             mask = c.add(Convert{ElementType::i32}, {c.reshape(c.in(1), {images, channels, -1})});
  const auto y = c.add(ScatterElementsUpdate{}, {zeros, mask, x, c.int_constant(2)});
  return {c.reshape(y, {images, channels, sizes[0], sizes[1]})};
}

/// With one bottom each element is repeated along both axes.
Values convert_upsample(const Call& c) {
  const auto p = c.params("upsample_param");
  if (c.known_rank(c.in(0)) != 4)
    c.fail("the bottom has shape {}, wanted rank 4", to_string(c.shape(c.in(0))));
  if (c.inputs() > 1) return unpooled(c, p);
  const auto scale = p.count("scale", 1);
  if (scale < 1 || scale > 4096) c.fail("scale is {}, wanted 1 to 4096", scale);
  Interpolate op;
  op.mode = InterpolateMode::nearest;
  op.shape_calculation_mode = ShapeCalculationMode::scales;
  op.coordinate_transformation_mode = CoordinateMode::asymmetric;
  op.nearest_mode = NearestMode::floor;
  const auto scales = c.floats({2}, Floats(2, static_cast<double>(scale)));
  return {c.add(std::move(op), {c.in(0), scales, c.ints_constant({2, 3})})};
}

}  // namespace

void register_pooling(ConverterTable& t) {
  t.add("Pooling", convert_pooling);
  t.add("Upsample", convert_upsample);
}

}  // namespace lamina::caffe
