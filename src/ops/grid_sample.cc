#include <algorithm>
#include <array>
#include <cmath>

#include "base/cancellation.h"
#include "base/parallel.h"
#include "ops/generation.h"
#include "ops/walk.h"

namespace lamina {

namespace {

constexpr std::size_t kMostAxes = 3;

/// Pixels that contribute along one axis, with their weights; index -1 stands for a pixel outside of the
/// picture.
struct SampleTaps {
  std::array<std::int64_t, 4> index{};
  std::array<double, 4> weight{};
  int count = 0;
};

std::int64_t mirrored(std::int64_t i, std::int64_t size, bool align_corners) {
  if (align_corners) {
    const auto period = size == 1 ? 1 : 2 * (size - 1);
    i = std::abs(i) % period;
    return i >= size ? period - i : i;
  }
  const auto period = 2 * size;
  i = (i % period + period) % period;
  return i >= size ? period - 1 - i : i;
}

class Sampler {
 public:
  Sampler(const GridSample& op) : op_(op) {}

  SampleTaps taps(double place, std::int64_t size) const {
    SampleTaps out;
    if (!std::isfinite(place)) place = op_.padding_mode == SamplePadding::zeros ? -2 : 0;
    const auto full = static_cast<double>(size);
    double at = op_.align_corners ? (place + 1) * (full - 1) / 2 : ((place + 1) * full - 1) / 2;
    at = std::clamp(at, -0x1p40, 0x1p40);
    if (op_.mode == SampleMode::nearest) return add(out, std::nearbyint(at), 1, size);
    const double low = std::floor(at), r = at - low;
    if (op_.mode == SampleMode::bilinear) {
      add(out, low, 1 - r, size);
      return add(out, low + 1, r, size);
    }
    const auto near = [](double d) { return ((kCubic + 2) * d - (kCubic + 3)) * d * d + 1; };
    const auto far = [](double d) { return ((kCubic * d - 5 * kCubic) * d + 8 * kCubic) * d - 4 * kCubic; };
    add(out, low - 1, far(1 + r), size);
    add(out, low, near(r), size);
    add(out, low + 1, near(1 - r), size);
    return add(out, low + 2, far(2 - r), size);
  }

 private:
  static constexpr double kCubic = -0.75;

  const SampleTaps& add(SampleTaps& taps, double at, double weight, std::int64_t size) const {
    auto i = static_cast<std::int64_t>(at);
    if (op_.padding_mode == SamplePadding::border) i = std::clamp<std::int64_t>(i, 0, size - 1);
    if (op_.padding_mode == SamplePadding::reflection) i = mirrored(i, size, op_.align_corners);
    const auto n = static_cast<std::size_t>(taps.count++);
    taps.index[n] = i < 0 || i >= size ? -1 : i;
    taps.weight[n] = weight;
    return taps;
  }

  const GridSample& op_;
};

/// Weighted sum over the taps of all axes.
double sample(const double* picture, const Dims& spatial, const std::array<SampleTaps, kMostAxes>& taps,
              std::size_t axis, std::int64_t offset) {
  if (axis == spatial.size()) return picture[offset];
  double sum = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(taps[axis].count); ++i)
    if (taps[axis].index[i] >= 0)
      sum += taps[axis].weight[i] *
             sample(picture, spatial, taps, axis + 1, offset * spatial[axis] + taps[axis].index[i]);
  return sum;
}

}  // namespace

void GridSample::infer(InferContext& c) const {
  const auto &x = c.shape(0), &grid = c.shape(1);
  if (x.ranked())
    c.require(x.rank() == 4 || x.rank() == 5, "x has shape {}, wanted rank 4 or 5", to_string(x));
  if (grid.ranked())
    c.require(grid.rank() == 4 || grid.rank() == 5, "grid has shape {}, wanted rank 4 or 5", to_string(grid));
  if (!x.ranked() || !grid.ranked()) {
    const auto& known = x.ranked() ? x : grid;
    return c.set(0, c.element(0), known.ranked() ? Shape::of_rank(known.rank()) : Shape());
  }
  const auto rank = x.rank();
  c.require(
      grid.rank() == rank && x[0].fits(grid[0]) && grid[rank - 1].fits(static_cast<std::int64_t>(rank) - 2),
      "x {} and grid {} do not fit", to_string(x), to_string(grid));
  c.require(mode != SampleMode::bicubic || rank == 4, "mode is bicubic, x has shape {}, wanted rank 4",
            to_string(x));
  std::vector<Dim> out{x[0], x[1]};
  for (std::size_t i = 2; i < rank; ++i) {
    c.require(x[i].high() > 0, "x has shape {}, wanted pixels to sample", to_string(x));
    out.push_back(grid[i - 1]);
  }
  c.set(0, c.element(0), std::move(out));
}

void GridSample::evaluate(EvalContext& c) const {
  const Dims spatial(c.dims(0).begin() + 2, c.dims(0).end());
  const auto axes = spatial.size();
  const auto places = volume(c.dims(1), 1, c.dims(1).size() - 1), channels = c.dims(0)[1],
             pixels = volume(spatial);
  const auto x = c.doubles(0), grid = c.doubles(1);
  std::vector<double> out(c.out().size());
  const Sampler sampler(*this);
  parallel_for(out.empty() ? 0 : c.dims(0)[0] * places, 16, [&](std::int64_t begin, std::int64_t end) {
    StopPoints points(1 << 12);
    for (auto p = begin; p < end; ++p) {
      std::array<SampleTaps, kMostAxes> taps;
      for (std::size_t a = 0; a < axes; ++a)  // the grid names the last axis first
        taps[a] = sampler.taps(grid[static_cast<std::size_t>(p) * axes + axes - 1 - a], spatial[a]);
      const auto n = p / places;
      for (std::int64_t k = 0; k < channels; ++k) {
        points();
        const auto plane = n * channels + k;
        out[static_cast<std::size_t>(plane * places + p % places)] =
            sample(x.data() + plane * pixels, spatial, taps, 0, 0);
      }
    }
  });
  c.store(0, out);
}

}  // namespace lamina
