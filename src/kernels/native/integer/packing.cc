#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "kernels/native/integer/matching.h"
#include "kernels/native/integer/weights.h"

namespace lamina::integers {
namespace {

using gemm::Product;

/// A panel of weights of type From as cells of `kNumbers` numbers of type To.
template <class From, class To, int kNumbers>
void pack_panel(const Product& p, const Operands& o, const WeightPlaces& at, std::int64_t group,
                std::int64_t panel, const From* weights, To* out) {
  const auto first = p.panels.column(panel), width = p.panels.vectors(panel) * p.panels.lanes;
  const auto here = std::min(width, p.panels.columns - first), words = at.words(o);
  const From* begin = weights + group * at.group + first * at.column;
  std::int32_t zeros[64];
  for (std::int64_t j = 0; j < here; ++j) zeros[j] = o.zero_of_column(group * p.panels.columns + first + j);
  std::memset(out, 0, sizeof(To) * static_cast<std::size_t>(at.runs * words * width * kNumbers));
  if (at.channel == 1 && at.taps == 1) {  // numbers of a column lie together
    for (std::int64_t r = 0; r < at.runs; ++r, out += words * width * kNumbers)
      for (std::int64_t j = 0; j < here; ++j) {
        const From* in = begin + r * at.run + j * at.column;
        To* to = out + j * kNumbers;
        std::int64_t e = 0;
        for (; e + kNumbers <= at.channels; e += kNumbers, to += width * kNumbers)
          for (int i = 0; i < kNumbers; ++i) to[i] = static_cast<To>(in[e + i] - zeros[j]);
        for (int i = 0; e + i < at.channels; ++i) to[i] = static_cast<To>(in[e + i] - zeros[j]);
      }
    return;
  }
  for (std::int64_t r = 0; r < at.runs; ++r)
    for (std::int64_t w = 0; w < words; ++w, out += width * kNumbers)
      for (int i = 0; i < kNumbers; ++i) {
        const auto e = w * kNumbers + i;
        if (e >= at.length()) break;
        const From* in = begin + r * at.run + e / at.channels * at.tap + e % at.channels * at.channel;
        if (at.column == 1)
          for (std::int64_t j = 0; j < here; ++j) out[j * kNumbers + i] = static_cast<To>(in[j] - zeros[j]);
        else
          for (std::int64_t j = 0; j < here; ++j)
            out[j * kNumbers + i] = static_cast<To>(in[j * at.column] - zeros[j]);
      }
}

template <class From>
void pack_panel(const Product& p, const Operands& o, const WeightPlaces& at, std::int64_t group,
                std::int64_t panel, const void* weights, std::byte* out) {
  const auto* from = static_cast<const From*>(weights);
  switch (o.arithmetic) {
    case gemm::Arithmetic::small_quads:
    case gemm::Arithmetic::quads:
      return pack_panel<From, std::int8_t, 4>(p, o, at, group, panel, from,
                                              reinterpret_cast<std::int8_t*>(out));
    case gemm::Arithmetic::wide_pairs:
      return pack_panel<From, std::int16_t, 2>(p, o, at, group, panel, from,
                                               reinterpret_cast<std::int16_t*>(out));
    default:
      return pack_panel<From, std::int8_t, 2>(p, o, at, group, panel, from,
                                              reinterpret_cast<std::int8_t*>(out));
  }
}

}  // namespace

WorkPartition packing_of(const Product& p) {
  const auto cells = static_cast<double>(p.groups * p.packed_floats());
  return partitioned_here(p.groups * p.panels.count,
                          cost_of(*p.machine, Family::transpose, 0, 4 * cells).us());
}

void pack_weights(const Product& p, const Operands& o, const WeightPlaces& places,
                  const WorkPartition& partition, const void* weights, std::byte* to) {
  if (p.matched_order) return pack_matched(p, o, places, weights, to);
  parallel_for(partition, [&](auto begin, auto end) {
    for (auto i = begin; i < end; ++i) {
      const auto group = i / p.panels.count, panel = i % p.panels.count;
      auto* out = to + (group * p.packed_floats() + p.panels.offset(panel)) * o.units().cell;
      if (o.weights == ElementType::i16)
        pack_panel<std::int16_t>(p, o, places, group, panel, weights, out);
      else if (o.weights == ElementType::i8)
        pack_panel<std::int8_t>(p, o, places, group, panel, weights, out);
      else
        pack_panel<std::uint8_t>(p, o, places, group, panel, weights, out);
    }
  });
}

namespace {

template <class T>
void sum_taps(const Product& p, const Operands& o, const WeightPlaces& at, const T* weights,
              std::int32_t* to) {
  const auto columns = p.panels.columns;
  for (std::int64_t t = 0; t < at.runs * at.taps; ++t)
    for (std::int64_t g = 0; g < p.groups; ++g, to += columns) {
      const T* from = weights + g * at.group + t / at.taps * at.run + t % at.taps * at.tap;
      for (std::int64_t j = 0; j < columns; ++j)
        to[j] = -static_cast<std::int32_t>(at.channels) * o.zero_of_column(g * columns + j);
      if (at.column == 1) {
        for (std::int64_t c = 0; c < at.channels; ++c, from += at.channel)
          for (std::int64_t j = 0; j < columns; ++j) to[j] += from[j];
        continue;
      }
      for (std::int64_t j = 0; j < columns; ++j, from += at.column)
        for (std::int64_t c = 0; c < at.channels; ++c) to[j] += from[c * at.channel];
    }
}

}  // namespace

void sums_of_taps(const Product& p, const Operands& o, const WeightPlaces& places, const void* weights,
                  std::int32_t* to) {
  if (o.weights == ElementType::i8)
    sum_taps(p, o, places, static_cast<const std::int8_t*>(weights), to);
  else
    sum_taps(p, o, places, static_cast<const std::uint8_t*>(weights), to);
}

void compensate(const std::int32_t* sums, std::int64_t count, std::int32_t shift, std::int32_t* to) {
  for (std::int64_t i = 0; i < count; ++i)  // wraps as sums do
    to[i] = static_cast<std::int32_t>(0u - static_cast<std::uint32_t>(sums[i]) *
                                               static_cast<std::uint32_t>(shift));
}

}  // namespace lamina::integers
