#include "kernels/native/binary/packing.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/cpu.h"
#include "base/parallel.h"
#include "base/work_partition.h"
#include "kernels/cost.h"
#include "ops/eval.h"

namespace lamina::binary {
namespace {

/// Taps in the order of the weights; those that follow each other are one, cut where counters are full.
void set_segments(Packing& b) {
  const auto& g = b.g;
  const auto bytes = b.kernels->unit_bytes;
  std::vector<Segment> whole;
  for (std::int64_t z = 0; z < g.kernel[0]; ++z)
    for (std::int64_t y = 0; y < g.kernel[1]; ++y)
      for (std::int64_t x = 0; x < g.kernel[2]; ++x) {
        const auto offset =
            z * g.dilation[0] * b.plane + y * g.dilation[1] * b.line + x * g.dilation[2] * b.point;
        if (!whole.empty() && whole.back().offset + whole.back().units * bytes == offset)
          whole.back().units += b.units;
        else
          whole.push_back({offset, b.units, false});
      }
  const auto most = b.kernels->most_units == 0 ? INT64_MAX : b.kernels->most_units;
  auto room = most;
  for (auto s : whole)
    while (s.units > 0) {
      const auto units = std::min(s.units, room);
      room -= units;
      b.segments.push_back({s.offset, units, room == 0});
      if (room == 0) room = most;
      s = {s.offset + units * bytes, s.units - units, false};
    }
  b.segments.back().flush = true;
}

void set_panels(Packing& b) {
  b.vectors = ceil_div(b.outputs(), b.kernels->lanes);
  const std::int64_t most = b.counted() > kMostCounted ? 1 : b.kernels->vectors;
  for (std::int64_t group = 0; group < b.g.groups; ++group)
    for (std::int64_t v = 0; v < b.vectors; v += most)
      b.panels.push_back({group, v, std::min(most, b.vectors - v)});
}

/// Sums of the weights +1 and -1 of each tap and output: [O][tap].
std::vector<std::int32_t> tap_sums(const Picture& b, const Tensor& weights) {
  const auto signs = signs_of(weights);
  const std::int64_t taps = b.g.taps(), channels = b.in_channels();
  std::vector<std::int32_t> sums(static_cast<std::size_t>(b.g.outputs * taps));
  const auto* from = signs.data();
  for (std::int64_t o = 0; o < b.g.outputs; ++o)
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t tap = 0; tap < taps; ++tap)
        sums[static_cast<std::size_t>(o * taps + tap)] += *from++ ? 1 : -1;
  return sums;
}

/// Kinds of outputs by which of their taps lie outside; one when it does not matter.
std::array<std::vector<windows::Run>, 3> kinds_of(const Picture& b) {
  std::array<std::vector<windows::Run>, 3> runs;
  for (std::size_t i = 0; i < 3; ++i) {
    if (b.pad_value != -1)
      runs[i] = windows::runs_of(b.g, i);
    else
      runs[i] = {{0, 1, b.g.out[i], 0, 1, b.g.kernel[i], 0, 0, 0}};
  }
  return runs;
}

void set_places(Picture& b) {
  const auto kinds = kinds_of(b);
  const windows::Triple bytes{b.plane, b.line, b.point};
  auto factor = static_cast<std::int64_t>(kinds[1].size() * kinds[2].size());
  for (std::size_t axis = 0; axis < 3; ++axis) {
    b.places[axis].resize(static_cast<std::size_t>(b.g.out[axis]));
    for (std::size_t k = 0; k < kinds[axis].size(); ++k)
      for (std::int64_t i = 0; i < kinds[axis][k].count; ++i) {
        const auto o = kinds[axis][k].first + i;
        b.places[axis][static_cast<std::size_t>(o)] = {o * b.g.stride[axis] * bytes[axis],
                                                       static_cast<std::int64_t>(k) * factor};
      }
    if (axis < 2) factor /= static_cast<std::int64_t>(kinds[axis + 1].size());
  }
}

/// Line `index` of all packed pictures.
void pack_line(const Packing& b, const Rows& in, const std::byte* from, std::uint8_t* to,
               std::int64_t index) {
  const auto& g = b.g;
  const std::int64_t y = index % b.padded[1] - g.pad[1], z = index / b.padded[1] % b.padded[0] - g.pad[0],
                     image = index / b.padded[1] / b.padded[0];
  const auto clear = [&](std::int64_t begin, std::int64_t end) {
    if (begin < end) std::memset(to + begin * b.point, 0, static_cast<std::size_t>((end - begin) * b.point));
  };
  if (y < 0 || y >= g.in[1] || z < 0 || z >= g.in[0]) return clear(0, b.padded[2]);
  const auto left = std::min(g.pad[2], b.padded[2]), count = std::min(g.in[2], b.padded[2] - left);
  clear(0, left);
  clear(left + count, b.padded[2]);
  Points p{};
  p.in = in.at<const void>(from, ((image * g.in[0] + z) * g.in[1] + y) * g.in[2]);
  p.booleans = in.element == ElementType::boolean;
  p.bits = in.bits();
  p.step = in.step;
  p.count = count;
  p.groups = g.groups;
  p.channels = b.in_channels();
  p.out = to + left * b.point;
  p.out_step = b.point;
  b.kernels->pack(p);
}

}  // namespace

std::vector<std::uint8_t> signs_of(const Tensor& weights) {
  std::vector<std::uint8_t> signs(weights.size());
  if (weights.element_type() == ElementType::u1) {
    for (std::size_t i = 0; i < signs.size(); ++i)
      signs[i] = std::to_integer<unsigned>(weights.raw()[i / 8]) >> (i % 8) & 1;
    return signs;
  }
  const auto values = to_floats(weights);
  for (std::size_t i = 0; i < signs.size(); ++i) signs[i] = values[i] > 0;
  return signs;
}

std::optional<Picture> Picture::of(const windows::Geometry& g, int pad_value, std::int64_t point,
                                   std::int64_t point_bytes, bool as_it_lies) {
  Picture b;
  b.g = g;
  b.pad_value = pad_value;
  b.point = point;
  for (std::size_t i = 0; i < 3; ++i)
    b.padded[i] = as_it_lies ? g.in[i] : (g.out[i] - 1) * g.stride[i] + (g.kernel[i] - 1) * g.dilation[i] + 1;
  double bytes = static_cast<double>(g.images * point_bytes);
  for (const auto size : b.padded) bytes *= static_cast<double>(size);
  const double floats =
      static_cast<double>(g.images * (g.in_points() * g.inputs + g.out_points() * g.outputs));
  if (bytes > 1e6 + 256 * floats) return std::nullopt;
  b.line = b.padded[2] * b.point;
  b.plane = b.padded[1] * b.line;
  b.image = b.padded[0] * b.plane;
  set_places(b);
  return b;
}

Tensor Picture::starts(const Tensor& weights, std::int64_t groups, std::int64_t stride) const {
  const auto kinds = kinds_of(*this);
  const auto sums = tap_sums(*this, weights);
  const std::int64_t each = g.outputs / groups, taps = g.taps(),
                     count = static_cast<std::int64_t>(kinds[0].size() * kinds[1].size() * kinds[2].size());
  Tensor out(ElementType::f32, {count, groups * stride});
  auto* to = out.data<float>().data();
  for (const auto& z : kinds[0])
    for (const auto& y : kinds[1])
      for (const auto& x : kinds[2]) {
        for (std::int64_t o = 0; o < g.outputs; ++o) {
          const auto* sum = sums.data() + o * taps;
          std::int64_t outside = 0;
          if (z.tap_count * y.tap_count * x.tap_count < taps) {
            for (std::int64_t t = 0; t < taps; ++t) outside += sum[t];
            for (auto i = z.first_tap; i < z.first_tap + z.tap_count; ++i)
              for (auto j = y.first_tap; j < y.first_tap + y.tap_count; ++j)
                for (auto k = x.first_tap; k < x.first_tap + x.tap_count; ++k)
                  outside -= sum[(i * g.kernel[1] + j) * g.kernel[2] + k];
          }
          to[o / each * stride + o % each] = static_cast<float>(counted() + (pad_value + 1) * outside);
        }
        to += groups * stride;
      }
  return out;
}

PackedSize Picture::starts_size(std::int64_t groups, std::int64_t stride) const {
  auto count = groups * stride;
  for (const auto& axis : kinds_of(*this)) count *= static_cast<std::int64_t>(axis.size());
  return {ElementType::f32, count};
}

std::string Picture::starts_key() const {
  std::string key = fmt::format("starts {}", pad_value);
  for (const auto& axis : kinds_of(*this)) {
    key += " /";
    for (const auto& kind : axis) key += fmt::format(" {}:{}", kind.first_tap, kind.tap_count);
  }
  return key;
}

std::optional<Packing> Packing::of(const windows::Geometry& g, const Kernels& kernels, int pad_value,
                                   bool as_it_lies) {
  const auto units = ceil_div(g.inputs / g.groups, kernels.unit_channels),
             point = g.groups * units * kernels.unit_bytes;
  const auto picture = Picture::of(g, pad_value, point, point, as_it_lies);
  if (!picture) return std::nullopt;
  Packing b;
  static_cast<Picture&>(b) = *picture;
  b.kernels = &kernels;
  b.units = units;
  set_segments(b);
  set_panels(b);
  return b;
}

Packing Packing::reading(const Rows& in) const {
  bool inside = in.bits() && kernels->unit_channels == 32 && g.pad == windows::Triple{0, 0, 0};
  for (std::size_t i = 0; i < 3; ++i) inside &= padded[i] <= g.in[i];
  if (!inside) return *this;
  auto b = *of(g, *kernels, pad_value, true);
  b.as_it_lies = true;
  return b;
}

void Packing::pack(const Rows& in, const void* from, void* scratch) const {
  if (as_it_lies) return;
  const double line_us = static_cast<double>(g.in[2] * g.inputs) / (in.bits() ? 16000 : 4000) + 0.01;
  const auto lines = g.images * padded[0] * padded[1];
  parallel_for(partitioned_here(lines, static_cast<double>(lines) * line_us),
               [&](std::int64_t begin, std::int64_t end) {
                 for (auto i = begin; i < end; ++i)
                   pack_line(*this, in, static_cast<const std::byte*>(from),
                             static_cast<std::uint8_t*>(scratch) + i * line, i);
               });
}

double Packing::work(const Machine& machine) const {
  const auto pairs = static_cast<double>(g.images * g.out_points() * all_lanes()) *
                     static_cast<double>(g.taps() * units * kernels->unit_channels);
  const double widest = lookup_kernels(machine.isa(), INT32_MAX).speed;
  return pairs * widest / kernels->speed;
}

PackedSize Packing::weights_size() const { return {ElementType::u8, g.groups * vectors * vector_bytes()}; }

Tensor Packing::weights(const Tensor& weights) const {
  const auto signs = signs_of(weights);
  const std::int64_t lanes = kernels->lanes, taps = g.taps(), channels = in_channels(),
                     unit_channels = kernels->unit_channels, unit_bytes = kernels->unit_bytes;
  Tensor out(ElementType::u8, {g.groups * vectors * vector_bytes()});
  auto* to = out.data<std::uint8_t>().data();
  for (std::int64_t o = 0; o < g.outputs; ++o) {
    const std::int64_t group = o / outputs(), vector = o % outputs() / lanes,
                       lane = kernels->lane(static_cast<int>(o % outputs() % lanes));
    auto* row = to + (group * vectors + vector) * vector_bytes() + lane * unit_bytes;
    const auto* from = signs.data() + o * channels * taps;
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t tap = 0; tap < taps; ++tap, ++from) {
        if (*from == 0) continue;
        const std::int64_t unit = tap * units + c / unit_channels, bit = c % unit_channels;
        auto& byte = row[unit * lanes * unit_bytes + bit / 8];
        byte = static_cast<std::uint8_t>(byte | 1u << bit % 8);
      }
  }
  return out;
}

Tensor Packing::limits(const Tensor& starts) const {
  Tensor out(ElementType::u16, starts.shape());
  const auto from = starts.data<float>();
  auto to = out.data<std::uint16_t>();
  const auto lanes = static_cast<std::size_t>(kernels->lanes);
  for (std::size_t i = 0; i < from.size(); ++i) {
    const auto lane = static_cast<std::size_t>(kernels->lane(static_cast<int>(i % lanes)));
    to[i / lanes * lanes + lane % 2 * (lanes / 2) + lane / 2] =
        static_cast<std::uint16_t>(std::clamp(std::ceil(from[i] / 2), 0.0F, 65535.0F));
  }
  return out;
}

}  // namespace lamina::binary
