#include "kernels/native/window.h"

#include <algorithm>

#include "ops/convolution.h"

namespace lamina::windows {
namespace {

Triple triple(const std::vector<std::int64_t>& values, std::int64_t fill) {
  Triple t{fill, fill, fill};
  std::copy(values.begin(), values.end(), t.end() - static_cast<std::ptrdiff_t>(values.size()));
  return t;
}

std::vector<std::int64_t> spatial(const Dims& dims) { return {dims.begin() + 2, dims.end()}; }

}  // namespace

Geometry geometry_of(const NodeView& v) {
  const auto& op = *v.op<Convolution>();
  const auto x = v.dims(0), w = v.dims(1), y = v.out_dims();
  const std::vector<Dim> sizes(x.begin() + 2, x.end());
  const auto r = resolve(op, sizes, spatial(w));
  Geometry g;
  g.images = x[0];
  g.inputs = x[1];
  g.outputs = y[1];
  g.groups = op.groups;
  g.in = triple(spatial(x), 1);
  g.out = triple(spatial(y), 1);
  g.kernel = triple(spatial(w), 1);
  g.stride = triple(r.strides, 1);
  g.dilation = triple(r.dilations, 1);
  g.pad = triple(r.pads_begin, 0);
  return g;
}

std::vector<Run> runs_of(const Geometry& g, std::size_t axis) {
  std::vector<Run> runs;
  for (std::int64_t o = 0; o < g.out[axis]; ++o) {
    const std::int64_t origin = o * g.stride[axis] - g.pad[axis], step = g.dilation[axis];
    std::int64_t first = 0, end = 0;  // taps inside
    while (first < g.kernel[axis] && origin + first * step < 0) ++first;
    for (end = first; end < g.kernel[axis] && origin + end * step < g.in[axis];) ++end;
    const auto count = end - first;
    if (!runs.empty() && runs.back().first_tap == first && runs.back().tap_count == count)
      ++runs.back().count;
    else
      runs.push_back({o, 1, first, count});
  }
  return runs;
}

}  // namespace lamina::windows
