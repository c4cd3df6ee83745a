#pragma once
/// Vector code of LinearAttention (linear.simd.cc).
#include <cstdint>

#include "base/cpu.h"

namespace lamina {

/// Some columns of one group's state, some of its tokens: columns know nothing of each other, and so many
/// stay in L1; tokens follow each other by way of the state.
struct LinearAttentionJob {
  const float *q, *k, *v;
  const float* decay;  ///< may be null
  const float* beta;   ///< may be null
  float *state, *y;    ///< the state is the first one, and becomes the last one
  std::int64_t tokens, key, width, heads;
  std::int64_t begin, end;  ///< the tokens that are done, of all
  std::int64_t decay_step;  ///< from one token's decay to the next: 1, one for all rows, or `key`
  bool decay_by_row;
};

struct LinearAttentionTable {
  std::int64_t columns;  ///< of a job
  /// Columns [first, first + count) of a job, `count` at most `columns`.
  void (*run)(const LinearAttentionJob& job, std::int64_t first, std::int64_t count);
};

const LinearAttentionTable& linear_attention_table(Isa isa);

}  // namespace lamina
