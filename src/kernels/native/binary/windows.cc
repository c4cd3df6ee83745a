#include "kernels/native/binary/windows.h"

#include <algorithm>

#include "base/work_partition.h"

namespace lamina::binary {

Windows::Windows(const Packing& packing, const Tensor& weights, const Tensor& starts, const Tensor& limits)
    : p_(packing),
      weights_(weights.data<std::uint8_t>().data()),
      starts_(starts.data<float>().data()),
      limits_(limits.valid() ? limits.data<std::uint16_t>().data() : nullptr) {}

void Windows::find(const std::uint8_t* image, std::int64_t from, std::int64_t width, std::int64_t first,
                   std::int64_t count) {
  count_ = count;
  const auto height = p_.g.out[1], outputs = p_.all_lanes();
  auto x = from + first % width, y = first / width % height, z = first / width / height;
  for (std::int64_t i = 0; i < count; x = from) {
    const auto &pz = p_.places[0][static_cast<std::size_t>(z)],
               &py = p_.places[1][static_cast<std::size_t>(y)];
    const auto* line = image + pz.offset + py.offset;
    const auto line_start = (pz.kind + py.kind) * outputs;
    for (const auto end = std::min(count, i + from + width - x); i < end; ++i, ++x) {
      const auto& px = p_.places[2][static_cast<std::size_t>(x)];
      x_[i] = line + px.offset;
      start_[i] = starts_ + line_start + px.kind * outputs;
      if (limits_) limit_[i] = limits_ + line_start + px.kind * outputs;
    }
    if (++y == height) y = 0, ++z;
  }
}

void Windows::run(const Panel& panel, Tile t) const {
  const std::int64_t lanes = p_.kernels->lanes, vector = panel.group * p_.vectors + panel.vector;
  t.x_add = panel.group * p_.units * p_.kernels->unit_bytes;
  t.start_add = vector * lanes;
  t.w_vector = p_.vector_bytes();
  t.w = weights_ + vector * t.w_vector;
  t.segments = p_.segments.data();
  t.segment_count = static_cast<std::int64_t>(p_.segments.size());
  t.channels = std::min(panel.vectors * lanes, p_.outputs() - panel.vector * lanes);
  const auto* kernels = p_.counted() > kMostCounted ? p_.kernels->many : p_.kernels->kernels[panel.vectors];
  const auto tiles = ceil_div(count_, p_.kernels->points);
  for (std::int64_t i = 0, at = 0; i < tiles; ++i) {
    const auto points = (count_ - at) / (tiles - i);
    t.x = x_ + at;
    t.start = start_ + at;
    t.limit = limit_ + at;
    kernels[points](t);
    at += points;
    if (t.signs) t.signs += points * t.out_step;
    if (t.out) t.out += points * t.out_step;
    if (t.bytes) t.bytes += points * t.out_step;
    if (t.add) t.add += points * t.add_step;
  }
}

}  // namespace lamina::binary
