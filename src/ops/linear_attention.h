#pragma once
/// Attention as a recurrence.
#include "ops/eval.h"

namespace lamina {

/// A state that each token's key and value are written into, and that its queries read. For token t of a
/// group:
///
///     state = state * decay[t]                               where there is a decay, by rows
///     v = beta[t] * (value[t] - key[t] * state)              where there is a beta; else value[t]
///     state = state + key[t]^T * v
///     y[t] = query[t] * state                                for each query head of the group
///
/// Inputs: query [N,H,T,K], key [N,G,T,K], value [N,G,T,V], state [N,G,K,V], decay? [N,G,T,K or 1], beta?
/// [N,G or 1,T,1]. H is a multiple of G: heads in order share a group. Outputs: y [N,H,T,V], the last state
/// [N,G,K,V]. Not an operator of OpenVINO.
struct LinearAttention {
  static constexpr OpInfo info{"LinearAttention",
                               4,
                               6,
                               2,
                               Trait::none,
                               "Attention by a state that keys and values update and queries read",
                               0,
                               OpFamily::matmul};
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  NodeWork work(const WorkContext& c) const {
    return {.multiply_adds = (2 * c.in(2) + c.out()) * c.axis(0, -1)};
  }
};

}  // namespace lamina
