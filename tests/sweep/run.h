#pragma once
/// Runs one offer for a node, in memory that shows what it reads or writes beyond its own.
#include "kernels/kernel.h"

namespace lamina::sweep {

/// Where an offer's tensors lie.
struct Place {
  /// Tensors begin at any multiple of their element's size, else at one of 64.
  bool tight = false;
  /// Bytes behind them, which hold NaN, before what cannot be read.
  std::size_t behind = 0;
};

/// The outputs, plain. Memory that nobody has written holds NaN. Throws Error(internal) when the offer writes
/// beyond its memory.
std::vector<Tensor> run_offer(const Graph& graph, NodeId id, const Offer& offer,
                              const std::vector<Tensor>& inputs, const Place& place);

/// What is running, for who asks when it has crashed.
void set_running(const std::string& what);
/// Prints what was running when the process gets a signal of its own making, or after so many seconds.
void watch(unsigned seconds);

}  // namespace lamina::sweep
