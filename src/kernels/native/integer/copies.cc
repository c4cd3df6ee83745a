#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "kernels/native/integer/source.h"

namespace lamina::integers {
namespace {

/// Numbers of a unit of a copy whose places follow each other on both sides.
constexpr std::int64_t kPiece = 1 << 14;

/// Nothing around it, nothing left out.
bool flat(const SourceCopy& c) {
  bool all = c.channel == 1 && c.point == c.channels && c.line == c.in[2] * c.point &&
             c.plane == c.in[1] * c.line && c.image == c.in[0] * c.plane;
  for (int i = 0; i < 3; ++i) all = all && c.from[i] == 0 && c.out[i] == c.in[i];
  return all;
}

/// One channel of a line whose channels lie apart.
template <class T>
void scatter(const std::uint8_t* from, std::int64_t step, std::int64_t count, bool is_signed,
             std::int32_t less, std::byte* to, std::int64_t to_step) {
  auto* out = reinterpret_cast<T*>(to);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int32_t value = is_signed ? static_cast<std::int8_t>(from[i * step]) : from[i * step];
    out[i * to_step] = static_cast<T>(value - less);
  }
}

}  // namespace

Copy copy_of(const Operands& o) {
  if (o.quads()) return o.signed_source ? Copy::shifted_bytes : Copy::bytes;
  return o.signed_source ? Copy::words_of_signed : Copy::words_of_unsigned;
}

Cost SourceCopy::cost(const Machine& machine) const {
  const auto moved = static_cast<double>(numbers() * (1 + element()));
  return channel == 1 ? move_cost(machine, moved) : cost_of(machine, Family::transpose, 0, 4 * moved);
}

void SourceCopy::plan_partition(const Machine& machine) {
  const auto units = flat(*this) ? ceil_div(numbers(), kPiece) : images * out[0] * out[1];
  partition = partitioned_here(units, cost(machine).us());
}

void SourceCopy::lines(const std::uint8_t* source, std::int32_t zero, std::byte* copy, std::int64_t begin,
                       std::int64_t end) const {
  const auto convert = source_loops().copy[static_cast<std::size_t>(how)];
  const bool is_signed = how == Copy::words_of_signed || how == Copy::shifted_bytes;
  // Padding: words are copied less their zero point, so it is 0; bytes keep the zero point like their
  // numbers.
  const int around = element() == 2 ? 0 : zero + (how == Copy::shifted_bytes ? 128 : 0);
  const auto point_bytes = channels * element(), line_bytes = out[2] * point_bytes;
  const auto fill = [&](std::byte* at, std::int64_t points) {
    std::memset(at, around, static_cast<std::size_t>(points * point_bytes));
  };
  const auto first = std::clamp<std::int64_t>(-from[2], 0, out[2]);
  const auto last = std::clamp<std::int64_t>(in[2] - from[2], first, out[2]);
  for (auto i = begin; i < end; ++i) {
    auto* to = copy + i * line_bytes;
    const auto y = i % out[1] + from[1], z = i / out[1] % out[0] + from[0], n = i / out[1] / out[0];
    if (y < 0 || y >= in[1] || z < 0 || z >= in[0] || first == last) {
      fill(to, out[2]);
      continue;
    }
    fill(to, first);
    fill(to + last * point_bytes, out[2] - last);
    const auto* at = source + n * image + z * plane + y * line + (first + from[2]) * point;
    to += first * point_bytes;
    if (channel == 1 && point == channels) {
      convert(at, (last - first) * channels, zero, to);
    } else if (channel == 1) {
      for (auto x = first; x < last; ++x, at += point, to += point_bytes) convert(at, channels, zero, to);
    } else {
      for (std::int64_t c = 0; c < channels; ++c)
        if (element() == 2)
          scatter<std::int16_t>(at + c * channel, point, last - first, is_signed, zero, to + 2 * c, channels);
        else
          scatter<std::uint8_t>(at + c * channel, point, last - first, is_signed, is_signed ? -128 : 0,
                                to + c, channels);
    }
  }
}

void SourceCopy::run(const void* source, std::int32_t zero, void* copy) const {
  const auto* bytes = static_cast<const std::uint8_t*>(source);
  auto* to = static_cast<std::byte*>(copy);
  const bool whole = flat(*this);
  parallel_for(partition, [&](std::int64_t begin, std::int64_t end) {
    if (!whole) return lines(bytes, zero, to, begin, end);
    const auto first = begin * kPiece, count = std::min(end * kPiece, numbers()) - first;
    source_loops().copy[static_cast<std::size_t>(how)](bytes + first, count, zero, to + first * element());
  });
}

}  // namespace lamina::integers
