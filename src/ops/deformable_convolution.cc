#include <algorithm>
#include <cmath>

#include "base/cancellation.h"
#include "base/parallel.h"
#include "ops/detection.h"
#include "ops/require.h"

namespace lamina {

namespace {

void require_list(const InferContext& c, const Ints& list, std::int64_t least, std::string_view what) {
  c.require((list.empty() || list.size() == 2) &&
                std::all_of(list.begin(), list.end(), [&](auto v) { return v >= least && v <= 1 << 20; }),
            "{} are {}, wanted 2 numbers from {} on", what, to_string(list), least);
}

Dim output_size(const InferContext& c, const Dim& size, const ResolvedWindow& w, std::size_t axis,
                std::int64_t kernel) {
  const auto span = (kernel - 1) * w.dilations[axis] + 1;
  const auto padded = size + Dim(w.pads_begin[axis] + w.pads_end[axis]);
  c.require(padded.high() >= span, "a padded axis of {} is shorter than the kernel's {}", to_string(padded),
            span);
  return padded.low() < span ? Dim() : floor_div(padded - Dim(span), w.strides[axis]) + Dim(1);
}

/// One channel of the picture.
struct OffsetPlane {
  const double* data;
  std::int64_t height, width;

  double pixel(std::int64_t y, std::int64_t x) const {
    return y < 0 || x < 0 || y >= height || x >= width ? 0 : data[y * width + x];
  }
  /// Between pixels; `soft`: pixels beyond the border are 0, else the border's stand for them.
  double at(double y, double x, bool soft) const {
    const auto h = static_cast<double>(height), w = static_cast<double>(width);
    const double least = soft ? -1 : 0;
    const bool inside =
        soft ? y > least && x > least && y < h && x < w : y >= least && x >= least && y < h && x < w;
    if (!inside) return 0;
    const auto top = static_cast<std::int64_t>(std::floor(y)),
               left = static_cast<std::int64_t>(std::floor(x));
    const auto bottom = soft ? top + 1 : std::min(top + 1, height - 1),
               right = soft ? left + 1 : std::min(left + 1, width - 1);
    const double dy = y - static_cast<double>(top), dx = x - static_cast<double>(left);
    return (1 - dy) * ((1 - dx) * pixel(top, left) + dx * pixel(top, right)) +
           dy * ((1 - dx) * pixel(bottom, left) + dx * pixel(bottom, right));
  }
};

}  // namespace

void DeformableConvolution::infer(InferContext& c) const {
  require_list(c, strides, 1, "strides");
  require_list(c, dilations, 1, "dilations");
  require_list(c, pads_begin, 0, "pads_begin");
  require_list(c, pads_end, 0, "pads_end");
  c.require(group >= 1 && deformable_group >= 1, "group is {}, deformable_group {}, wanted at least 1", group,
            deformable_group);
  for (std::size_t i = 0; i < c.inputs(); ++i)
    if (c.has(i)) require_rank(c, i, 4, i == 0 ? "x" : (i == 1 ? "offsets" : (i == 2 ? "weights" : "mask")));
  const auto &x = c.shape(0), &offsets = c.shape(1), &weights = c.shape(2);
  Shape out = Shape::of_rank(4);
  if (x.ranked()) {
    out[0] = x[0];
    c.require(!x[1].known() || (x[1].size() % group == 0 && x[1].size() % deformable_group == 0),
              "x has shape {}, wanted channels in {} groups and {} deformable groups", to_string(x), group,
              deformable_group);
  }
  if (weights.ranked()) {
    out[1] = weights[0];
    c.require(!weights[0].known() || weights[0].size() % group == 0,
              "weights have shape {}, wanted output channels in {} groups", to_string(weights), group);
    if (x.ranked())
      c.require((weights[1] * Dim(group)).fits(x[1]), "weights {} do not fit x {} in {} groups",
                to_string(weights), to_string(x), group);
  }
  if (x.ranked() && weights.ranked() && weights[2].known() && weights[3].known()) {
    c.require(weights[2].size() >= 1 && weights[3].size() >= 1, "weights have shape {}, wanted a kernel",
              to_string(weights));
    const Dims kernel{weights[2].size(), weights[3].size()};
    const Dim spatial[2] = {x[2], x[3]};
    const auto w = resolve(*this, spatial, kernel);
    const bool known = (auto_pad != AutoPad::same_upper && auto_pad != AutoPad::same_lower) ||
                       (x[2].known() && x[3].known());
    for (std::size_t a = 0; a < 2 && known; ++a) out[2 + a] = output_size(c, spatial[a], w, a, kernel[a]);
    const auto taps = Dim(deformable_group) * Dim(kernel[0]) * Dim(kernel[1]);
    const auto fits = [&](const Shape& s, const Dim& channels) {
      return s.fits(Shape{out[0], channels, out[2], out[3]});
    };
    c.require(fits(offsets, taps * Dim(2)), "offsets have shape {}, wanted {} channels for an output of {}",
              to_string(offsets), to_string(taps * Dim(2)), to_string(out));
    if (c.has(3))
      c.require(fits(c.shape(3), taps), "mask has shape {}, wanted {} channels for an output of {}",
                to_string(c.shape(3)), to_string(taps), to_string(out));
  }
  c.set(0, c.element(0), out);
}

void DeformableConvolution::evaluate(EvalContext& c) const {
  const auto &dims = c.dims(0), &weight_dims = c.dims(2), &to_dims = c.out_dims();
  const auto x = c.doubles(0), offsets = c.doubles(1), weights = c.doubles(2);
  const auto mask = c.has(3) ? c.doubles(3) : std::vector<double>();
  const Dim spatial[2] = {dims[2], dims[3]};
  const auto kh = weight_dims[2], kw = weight_dims[3];
  const auto w = resolve(*this, spatial, Dims{kh, kw});
  const auto taps = kh * kw, in_channels = weight_dims[1], per_group = weight_dims[0] / group,
             places = to_dims[2] * to_dims[3];
  const auto per_offset_group = std::max<std::int64_t>(dims[1] / deformable_group, 1);
  std::vector<double> out(c.out().size(), 0.0);
  const auto value = [&](std::int64_t n, std::int64_t o, std::int64_t place) {
    const auto oy = place / to_dims[3], ox = place % to_dims[3];
    double sum = 0;
    for (std::int64_t i = 0; i < in_channels; ++i) {
      const auto channel = o / per_group * in_channels + i;
      const OffsetPlane plane{x.data() + (n * dims[1] + channel) * dims[2] * dims[3], dims[2], dims[3]};
      for (std::int64_t t = 0; t < taps; ++t) {
        const auto tap = (n * deformable_group + channel / per_offset_group) * taps + t;
        const auto offset = [&](std::int64_t k) {
          return offsets[static_cast<std::size_t>((tap * 2 + k) * places + place)];
        };
        const double y =
            static_cast<double>(oy * w.strides[0] - w.pads_begin[0] + t / kw * w.dilations[0]) + offset(0);
        const double px =
            static_cast<double>(ox * w.strides[1] - w.pads_begin[1] + t % kw * w.dilations[1]) + offset(1);
        const double m = mask.empty() ? 1 : mask[static_cast<std::size_t>(tap * places + place)];
        sum += m * weights[static_cast<std::size_t>((o * in_channels + i) * taps + t)] *
               plane.at(y, px, bilinear_interpolation_pad);
      }
    }
    return sum;
  };
  parallel_for(static_cast<std::int64_t>(out.size()), 64, [&](std::int64_t begin, std::int64_t end) {
    StopPoints points(1 << 13);
    for (auto i = begin; i < end; ++i) {
      points(in_channels * taps);
      const auto plane = i / places;
      out[static_cast<std::size_t>(i)] = value(plane / weight_dims[0], plane % weight_dims[0], i % places);
    }
  });
  c.store(0, out);
}

}  // namespace lamina
