#pragma once
/// Kernels of libraries: their configurations as offers.
#include "kernels/kernel.h"

namespace lamina {

/// Runs a library's operation where output shapes depend on values. Immutable, shared by threads.
class DynamicKernel {
 public:
  virtual ~DynamicKernel() = default;
  virtual std::string label() const = 0;
  virtual std::vector<Tensor> run(const std::vector<Tensor>& inputs) const = 0;
};
/// Null where the node's operator is none of a library; the interpreter where it has no kernel. Constants are
/// prepared by the store.
std::shared_ptr<const DynamicKernel> dynamic_kernel(const NodeView& view, WeightStore& weights);

}  // namespace lamina
