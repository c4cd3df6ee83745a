#include "kernels/native/resize/taps.h"

#include <algorithm>
#include <cmath>

namespace lamina {
namespace {

struct Tap {
  std::int64_t at;
  double weight;
};
using Taps = std::vector<Tap>;

/// Keys's cubic (a: cube_coeff) or a triangle.
double kernel_value(bool cubic, double a, double distance) {
  const double t = std::fabs(distance);
  if (!cubic) return t < 1 ? 1 - t : 0;
  if (t >= 2) return 0;
  return t <= 1 ? 1 + t * t * ((a + 2) * t - (a + 3)) : a * (t * (t * (t - 5) + 8) - 4);
}

struct Filter {
  bool cubic;
  double a;
  double narrow;   ///< distances are multiplied by it
  bool drop;       ///< positions outside count nothing, else they read the border
  bool normalize;  ///< to a sum of 1
};

void sample(const Filter& f, double x, std::int64_t first, std::int64_t last, std::int64_t size, Taps& taps) {
  double sum = 0;
  for (auto i = first; i <= last; ++i) {
    const bool inside = i >= 0 && i < size;
    if (!inside && f.drop) continue;
    const double w = kernel_value(f.cubic, f.a, (static_cast<double>(i) - x) * f.narrow);
    const auto at = std::clamp<std::int64_t>(i, 0, size - 1);
    sum += w;
    if (!taps.empty() && taps.back().at == at)
      taps.back().weight += w;
    else
      taps.push_back({at, w});
  }
  if (f.normalize)
    for (auto& t : taps) t.weight = sum == 0 ? 0 : t.weight / sum;
}

/// Pillow filters areas.
void pillow(const Interpolate& op, const ResizeAxis& a, std::int64_t o, Taps& taps) {
  const bool cubic = op.mode == InterpolateMode::bicubic_pillow;
  const double factor = static_cast<double>(a.padded) / static_cast<double>(a.out);
  const double wide = std::max(1.0, factor), radius = (cubic ? 2 : 1) * wide;
  const double centre = factor * (static_cast<double>(o) + 0.5);
  const auto first = std::max<std::int64_t>(0, static_cast<std::int64_t>(centre - radius + 0.5));
  const auto end = std::min(a.padded, static_cast<std::int64_t>(centre + radius + 0.5));
  sample({cubic, op.cube_coeff, 1 / wide, true, true}, centre - 0.5, first, end - 1, a.padded, taps);
}

/// Adds the taps in the padded picture; false when the position lies outside of what tf_crop_and_resize
/// shows.
bool add_taps(const Interpolate& op, const ResizeAxis& a, std::int64_t o, Taps& taps) {
  if (!a.resized) {
    taps.push_back({o, 1});
    return true;
  }
  const bool linear_pillow = op.mode == InterpolateMode::bilinear_pillow;
  if (linear_pillow || op.mode == InterpolateMode::bicubic_pillow) {
    pillow(op, a, o, taps);
    return true;
  }
  const ResizeCoordinates coordinates(op.coordinate_transformation_mode, a.padded, a.out, a.scale,
                                      a.roi_start, a.roi_end);
  if (coordinates.outside(o)) return false;
  const double place = coordinates.at(o);
  if (std::isnan(place)) return true;
  if (op.mode == InterpolateMode::nearest) {
    const auto at = coordinates.nearest(op.nearest_mode, o);
    taps.push_back({std::clamp<std::int64_t>(at, 0, a.padded - 1), 1});
    return true;
  }
  Filter f;
  f.cubic = op.mode == InterpolateMode::cubic;
  f.a = op.cube_coeff;
  f.narrow = a.filter_scale;
  f.drop = op.exclude_outside || op.mode == InterpolateMode::linear;
  f.normalize = f.drop || a.filter_scale != 1;
  const double radius = std::min((f.cubic ? 2 : 1) / f.narrow, 16 + 4 * static_cast<double>(a.padded));
  const double beyond = static_cast<double>(a.padded) + 4;  // far away is as good as this
  const double centre = std::clamp(place, -beyond, 2 * beyond);
  sample(f, centre, static_cast<std::int64_t>(std::floor(centre - radius)) + 1,
         static_cast<std::int64_t>(std::floor(centre + radius)), a.padded, taps);
  return true;
}

/// What a position reads, without what is padding or counts nothing, at places of the picture itself.
ResizeTable::Special read_by(const Interpolate& op, const ResizeAxis& a, std::int64_t o, Taps& taps) {
  using Special = ResizeTable::Special;
  taps.clear();
  if (!add_taps(op, a, o, taps)) return Special::outside;
  std::erase_if(taps,
                [&](const Tap& t) { return t.weight == 0 || t.at < a.pad || t.at >= a.pad + a.picture; });
  for (auto& t : taps) t.at -= a.pad;
  return taps.empty() ? Special::zero : Special::none;
}

}  // namespace

bool ResizeTable::copies() const {
  return special.empty() && std::all_of(plain.begin(), plain.end(), [](auto p) { return p != 0; });
}

bool ResizeTable::identity() const {
  if (in != out || !copies()) return false;
  for (std::int64_t o = 0; o < out; ++o)
    if (index[static_cast<std::size_t>(o * taps)] != o) return false;
  return true;
}

ResizeTable resize_table(const Interpolate& op, const ResizeAxis& axis) {
  using Special = ResizeTable::Special;
  ResizeTable table;
  table.in = axis.picture;
  table.out = axis.out;
  Taps taps;
  std::size_t most = 1;
  bool any_special = false;
  for (std::int64_t o = 0; o < axis.out; ++o) {
    any_special |= read_by(op, axis, o, taps) != Special::none;
    most = std::max(most, taps.size());
  }
  table.taps = static_cast<std::int64_t>(most);
  const auto count = static_cast<std::size_t>(axis.out);
  table.index.reserve(count * most);
  table.weight.reserve(count * most);
  table.plain.reserve(count);
  for (std::int64_t o = 0; o < axis.out; ++o) {
    const auto special = read_by(op, axis, o, taps);
    if (any_special) table.special.push_back(special);
    table.plain.push_back(taps.size() == 1 && taps[0].weight == 1);
    if (taps.empty()) taps.push_back({0, 0});
    // Halves of a weight give the same value, infinities included; a weight of 0 would not.
    while (taps.size() < most) {
      taps.back().weight /= 2;
      taps.push_back(taps.back());
    }
    for (const auto& t : taps) {
      table.index.push_back(static_cast<std::int32_t>(t.at));
      table.weight.push_back(static_cast<float>(t.weight));
    }
  }
  return table;
}

}  // namespace lamina
