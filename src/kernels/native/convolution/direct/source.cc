#include "kernels/native/convolution/direct/source.h"

#include "base/mapped_file.h"
#include "base/parallel.h"

namespace lamina::convolutions {

using gemm::Product;
using gemm::Segment;
using windows::Geometry;
using windows::Run;

Source source_of(const Geometry& g, const Rows& in) {
  Source s;
  s.plain = in.layout == Layout::plain;
  s.point = s.plain ? 1 : in.step;
  s.channel = s.plain ? g.in_points() : 1;
  s.line = g.in[2] * s.point;
  s.plane = g.in[1] * s.line;
  return s;
}

std::vector<Segment> segments_of(const Geometry& g, const Source& s, const Run& z, const Run& y,
                                 const Run& x) {
  std::vector<Segment> list;
  const std::int64_t channels = g.inputs / g.groups, words = std::max(s.words, ceil_div(channels, s.in_word));
  const auto add = [&](std::int64_t a, std::int64_t b, std::int64_t length) {
    if (!list.empty() && list.back().a + list.back().length * s.in_word == a &&
        list.back().b + list.back().length == b)
      list.back().length += length;
    else
      list.push_back({a, b, length});
  };
  const std::int64_t outer = s.plain ? channels : 1;
  for (std::int64_t c = 0; c < outer; ++c)
    for (std::int64_t kz = 0; kz < z.tap_count; ++kz)
      for (std::int64_t ky = 0; ky < y.tap_count; ++ky)
        for (std::int64_t kx = 0; kx < x.tap_count; ++kx) {
          const std::int64_t a = c * s.channel + kz * z.input_tap * s.plane + ky * y.input_tap * s.line +
                                 kx * x.input_tap * s.point;
          const std::int64_t tap = (z.tap(kz) * g.kernel[1] + y.tap(ky)) * g.kernel[2] + x.tap(kx);
          if (s.plain)
            add(a, c * g.taps() + tap, 1);
          else
            add(a, tap * words, words);
        }
  return list;
}

std::int64_t regions_of(const Geometry& g) {
  std::int64_t planes = 0;
  for (const auto& z : windows::runs_of(g, 0)) planes += z.count;
  return planes * static_cast<std::int64_t>(windows::runs_of(g, 1).size() * windows::runs_of(g, 2).size());
}

void add_regions(const Geometry& g, const Source& s, std::int64_t threads, Product& p) {
  p.groups = g.groups;
  p.a_group = g.inputs / g.groups * s.channel;
  const auto zs = windows::runs_of(g, 0), ys = windows::runs_of(g, 1), xs = windows::runs_of(g, 2);
  std::int64_t z_run = 0;
  for (const auto& z : zs) {
    for (std::int64_t i = 0; i < z.count; ++i) {
      auto taps = z_run * static_cast<std::int64_t>(ys.size() * xs.size());
      for (const auto& y : ys)
        for (const auto& x : xs) {
          gemm::Region region;
          region.width = x.count;
          region.lines = y.count;
          region.a_step = x.tap_count == 0 ? 0 : x.input_step * s.point;
          region.a_line = y.tap_count == 0 ? 0 : y.input_step * s.line;
          region.a_first = (z.tap_count == 0 ? 0 : z.input + i * z.input_step) * s.plane + y.input * s.line +
                           x.input * s.point;
          region.c_step = x.step;
          region.c_line = y.step * g.out[2];
          region.c_first = ((z.first + i * z.step) * g.out[1] + y.first) * g.out[2] + x.first;
          if (p.arithmetic != gemm::Arithmetic::floats) region.bias = taps++;
          p.add_region(region, segments_of(g, s, z, y, x));
        }
    }
    ++z_run;
  }
  p.batches.add(g.images, {g.in_points() * (s.plain ? g.inputs : s.point), 0, g.out_points()});
  p.partition(threads);
}

std::int64_t run_length(const Geometry& g, const Source& s) {
  const std::int64_t channels = g.inputs / g.groups;
  if (s.plain) return g.dilation[2] == 1 ? g.kernel[2] : 1;
  return !g.transposed && g.dilation[2] == 1 && g.groups == 1 && s.point == channels ? g.kernel[2] * channels
                                                                                     : channels;
}

namespace {

/// [O, I / groups, taps], or transposed [I, O / groups, taps], as [O, taps, I / groups]: then k is what lies
/// together. `columns` taps along the width go before the outputs.
std::vector<float> taps_first(const float* w, const Geometry& g, std::int64_t columns) {
  const auto taps = g.taps(), channels = g.inputs / g.groups, outputs = g.outputs / g.groups;
  std::vector<float> out(static_cast<std::size_t>(g.outputs * channels * taps));
  for (std::int64_t o = 0; o < g.outputs; ++o)
    for (std::int64_t c = 0; c < channels; ++c) {
      const auto input = o / outputs * channels + c;
      const float* from = w + (g.transposed ? input * outputs + o % outputs : o * channels + c) * taps;
      for (std::int64_t t = 0; t < taps; ++t) {
        const auto row = (t % columns * g.outputs + o) * (taps / columns) + t / columns;
        out[static_cast<std::size_t>(row * channels + c)] = from[t];
      }
    }
  return out;
}

}  // namespace

Tensor packed_weights(const Tensor& source, const Geometry& g, std::int64_t tap_columns, const Product& p,
                      bool plain, WeightStore& store) {
  const auto key = fmt::format("native_convolution {} {} {} {} {}", p.panels.lanes, p.dots, plain, g.groups,
                               g.transposed ? tap_columns : 0);
  const PackedSize size(ElementType::f32, g.groups * p.packed_floats());
  return store.packed(source, key, size, [&](const Tensor& clean) {
    const std::int64_t channels = g.inputs / g.groups, depth = p.panels.depth, columns = p.panels.columns;
    const std::byte* w = clean.raw();
    std::vector<float> reordered;
    if (g.transposed || (!plain && g.taps() > 1 && channels > 1)) {
      reordered = taps_first(aligned_once(clean).data<float>().data(), g, tap_columns);
      w = reinterpret_cast<const std::byte*>(reordered.data());
    }
    Tensor out(ElementType::f32, {g.groups * p.packed_floats()});
    for (std::int64_t i = 0; i < g.groups; ++i)
      p.pack_constant(w + sizeof(float) * static_cast<std::size_t>(i * columns * depth), 1, depth,
                      out.data<float>().data() + i * p.packed_floats());
    return out;
  });
}

}  // namespace lamina::convolutions
