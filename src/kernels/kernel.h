#pragma once
/// Kernels make offers for nodes.
#include <functional>
#include <string>
#include <vector>

#include "kernels/node_view.h"
#include "kernels/offer.h"
#include "kernels/weights.h"

namespace lamina {

/// A source of offers for some operators; appends offers or refusals.
struct Kernel {
  std::string name;  ///< whose it is and what it runs, its key: "native.convolution"
  std::function<bool(const Op&)> takes;
  std::function<void(const NodeView&, Answers&)> offer;
};

/// All kernels in the order in which they are asked, the reference one last.
using KernelList = std::shared_ptr<const std::vector<Kernel>>;
KernelList kernels();
/// One more for all models that are planned from now on; thread-safe. Throws Error(bad_call) when there is
/// one of that name.
void add_kernel(Kernel kernel);
/// What plans have made of it stays. Nothing happens when there is none.
void remove_kernel(std::string_view name);
/// Asks every kernel that takes the node's operator. The reference kernel always offers. `only`: asks that
/// kernel alone.
Answers ask_kernels(const NodeView& view, std::string_view only = {});
/// The kernel of a recipe, for a node like the one that it was offered for. Throws Error(unsupported) when it
/// is not offered (any more).
Offer offer_of(const NodeView& view, const Recipe& recipe);

/// A plain tensor's bytes in another layout, now: an aligned tensor of its type and shape, or of u8 where
/// they are packed; and back.
Tensor laid_out(const Tensor& plain, Layout layout);
/// What that gives for a tensor of this type and shape, as WeightStore wants it.
PackedSize size_laid_out(const Tensor& plain, Layout layout);
Tensor plain_of(const Tensor& memory, ElementType type, const Dims& shape, Layout layout);
/// Cost of the reorder, on one thread.
Cost reorder_cost(const Machine& machine, ElementType type, const Dims& shape);

}  // namespace lamina
