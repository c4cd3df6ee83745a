#pragma once
/// Weights of products of integers, packed as kernels read them.
#include <cstdint>

#include "kernels/native/integer/operands.h"

namespace lamina::integers {

/// Where the weights of one group lie, in numbers: k is `runs` runs of `taps` taps of `channels` numbers,
/// each run filled up with zeros to whole words.
struct WeightPlaces {
  std::int64_t runs = 1, taps = 1, channels = 1;
  std::int64_t run = 0, tap = 0, channel = 1;  ///< from one to the next
  std::int64_t column = 1, group = 0;

  std::int64_t length() const { return taps * channels; }  ///< numbers of a run
  std::int64_t words(const Operands& o) const { return o.words(length()); }
};

/// How the work of packing is divided: not to be found out in a run, which allocates nothing.
WorkPartition packing_of(const gemm::Product& p);
/// Packs all groups of a product's B; `to`: its packed_floats() cells for each group.
void pack_weights(const gemm::Product& p, const Operands& o, const WeightPlaces& places,
                  const WorkPartition& partition, const void* weights, std::byte* to);

/// For each tap of all runs and each column of all groups, the sum of its weights.
void sums_of_taps(const gemm::Product& p, const Operands& o, const WeightPlaces& places, const void* weights,
                  std::int32_t* to);

/// What sums of a product begin with where so much was added to each number of its source: `sums` of the
/// weights that a sum has, times `shift`, are too much.
void compensate(const std::int32_t* sums, std::int64_t count, std::int32_t shift, std::int32_t* to);

}  // namespace lamina::integers
