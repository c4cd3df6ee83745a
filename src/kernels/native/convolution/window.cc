#include "kernels/native/convolution/window.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>

#include "ops/convolution.h"

namespace lamina::windows {
namespace {

Triple triple(const std::vector<std::int64_t>& values, std::int64_t fill) {
  Triple t{fill, fill, fill};
  std::copy(values.begin(), values.end(), t.end() - static_cast<std::ptrdiff_t>(values.size()));
  return t;
}

std::vector<std::int64_t> spatial(const Dims& dims) { return {dims.begin() + 2, dims.end()}; }

ResolvedWindow window_of(const NodeView& v) {
  const auto x = v.dims(0), y = v.out_dims();
  const std::vector<Dim> sizes(x.begin() + 2, x.end());
  if (const auto* op = v.op<Convolution>()) return resolve(*op, sizes, spatial(v.dims(1)));
  if (const auto* op = v.op<BinaryConvolution>()) return resolve(*op, sizes, spatial(v.dims(1)));
  std::vector<Dim> wanted;  // what input 3 asks for
  if (v.has(3)) wanted.assign(y.begin() + 2, y.end());
  return resolve_transposed(*v.op<ConvolutionBackpropData>(), sizes, spatial(v.dims(1)), wanted);
}

/// How taps and inputs go with the outputs of an axis.
struct Steps {
  std::int64_t output, tap, input, input_tap;
};

/// y[o] sums x[o * stride - pad + k * dilation] w[k]; transposed, those with o = i * stride - pad + k *
/// dilation.
Steps steps_of(const Geometry& g, std::size_t axis) {
  if (!g.transposed) return {1, 1, g.stride[axis], g.dilation[axis]};
  const auto common = std::gcd(g.stride[axis], g.dilation[axis]);
  return {g.stride[axis], g.stride[axis] / common, 1, -g.dilation[axis] / common};
}

/// The first tap that lands on an input, inside the picture or not, and that input; none when no tap does.
std::optional<std::pair<std::int64_t, std::int64_t>> first_tap(const Geometry& g, std::size_t axis,
                                                               std::int64_t output) {
  if (!g.transposed) return std::pair{std::int64_t{0}, output * g.stride[axis] - g.pad[axis]};
  for (std::int64_t k = 0; k < std::min(g.kernel[axis], g.stride[axis]); ++k) {
    const auto at = output + g.pad[axis] - k * g.dilation[axis];
    if (at % g.stride[axis] == 0) return std::pair{k, at / g.stride[axis]};
  }
  return std::nullopt;
}

}  // namespace

Geometry geometry_of(const NodeView& v) {
  const auto* back = v.op<ConvolutionBackpropData>();
  const auto* binary = v.op<BinaryConvolution>();
  const auto x = v.dims(0), w = v.dims(1), y = v.out_dims();
  const auto r = window_of(v);
  Geometry g;
  g.transposed = back != nullptr;
  g.images = x[0];
  g.inputs = x[1];
  g.outputs = y[1];
  g.groups = back ? back->groups : binary ? binary->groups : v.op<Convolution>()->groups;
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
  const auto steps = steps_of(g, axis);
  const auto inside = [&](std::int64_t i) { return i >= 0 && i < g.in[axis]; };
  for (std::int64_t phase = 0; phase < std::min(steps.output, g.out[axis]); ++phase) {
    const auto begin = runs.size();
    for (auto o = phase; o < g.out[axis]; o += steps.output) {
      Run r{o, steps.output, 1, 0, steps.tap, 0, 0, steps.input, steps.input_tap};
      if (const auto first = first_tap(g, axis, o)) {
        std::tie(r.first_tap, r.input) = *first;
        for (; r.first_tap < g.kernel[axis] && !inside(r.input); r.first_tap += steps.tap)
          r.input += steps.input_tap;
        for (auto k = r.first_tap, i = r.input; k < g.kernel[axis] && inside(i); k += steps.tap) {
          ++r.tap_count;
          i += steps.input_tap;
        }
      }
      if (r.tap_count == 0) r.first_tap = r.input = 0;
      auto* last = runs.size() > begin ? &runs.back() : nullptr;
      if (last && last->first_tap == r.first_tap && last->tap_count == r.tap_count)
        ++last->count;
      else
        runs.push_back(r);
    }
  }
  return runs;
}

}  // namespace lamina::windows
