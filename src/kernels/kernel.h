#pragma once
/// Kernels make offers for nodes.
#include <functional>
#include <string>
#include <vector>

#include "kernels/node_view.h"
#include "kernels/offer.h"

namespace lamina {

/// A source of offers for some operators; appends offers or refusals.
struct Kernel {
  std::string name;
  std::function<bool(const Op&)> takes;
  std::function<void(const NodeView&, Answers&)> offer;
};

/// All kernels, the reference one last.
const std::vector<Kernel>& kernels();
/// Asks every kernel that takes the node's operator. The reference kernel always offers.
Answers ask_kernels(const NodeView& view);

/// The tensor's bytes in another layout, now. As bits they are u8; what reads these is bits::unpacked().
Tensor reordered(const Tensor& tensor, Layout from, Layout to);
/// Estimated microseconds of that copy on one thread.
double reorder_cost(const Machine& machine, ElementType type, const Dims& shape);

}  // namespace lamina
