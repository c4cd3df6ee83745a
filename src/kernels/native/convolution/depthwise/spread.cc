#include "kernels/native/convolution/depthwise/spread.h"

#include <cstring>

#include "base/parallel.h"

namespace lamina::depthwise {

namespace {

/// Largest size of the input with gaps.
constexpr double kMostBytes = 1 << 30;

double count(const windows::Geometry& g) {
  return static_cast<double>(g.images) * static_cast<double>(g.inputs) * static_cast<double>(g.in[0]) *
         static_cast<double>(g.in[1]) * static_cast<double>(g.in[2]);
}

}  // namespace

std::int64_t Spread::bytes() const { return as.images * as.in_points() * as.inputs; }

Cost Spread::cost(const Machine& machine) const {
  if (!copies()) return {};
  return move_cost(machine, static_cast<double>(bytes() + from.images * from.in_points() * from.inputs));
}

std::optional<Spread> spread_of(const Machine& machine, const windows::Geometry& transposed) {
  Spread s{transposed, transposed, {}};
  s.as.transposed = false;
  for (std::size_t i = 0; i < 3; ++i) {
    s.as.in[i] = (transposed.in[i] - 1) * transposed.stride[i] + 1;
    s.as.stride[i] = 1;
    s.as.pad[i] = (transposed.kernel[i] - 1) * transposed.dilation[i] - transposed.pad[i];
    if (s.as.pad[i] < 0) return std::nullopt;
  }
  if (count(s.as) > kMostBytes) return std::nullopt;
  s.partition = partitioned_here(s.as.images * s.as.in[1], s.cost(machine).us());
  return s;
}

void Spread::run(const Rows& in, const void* source, std::int32_t zero_point, std::byte* to) const {
  const auto point = as.inputs, line = as.in[2] * point, step = from.stride[2] * point;
  parallel_for(partition, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = begin; i < end; ++i) {
      auto* out = to + i * line;
      const auto y = i % as.in[1], image = i / as.in[1];
      std::memset(out, zero_point, static_cast<std::size_t>(line));
      if (y % from.stride[1] != 0) continue;
      const auto first = (image * from.in[1] + y / from.stride[1]) * from.in[2];
      for (std::int64_t x = 0; x < from.in[2]; ++x)
        std::memcpy(out + x * step, in.at<const std::byte>(source, first + x, 0),
                    static_cast<std::size_t>(point));
    }
  });
}

}  // namespace lamina::depthwise
