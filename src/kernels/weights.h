#pragma once
/// Constants as kernels want them.
#include <functional>
#include <string>

#include "lamina/tensor.h"

namespace lamina {

/// Packed constants, shared by all plans and requests of a model. Thread-safe.
class WeightStore {
 public:
  virtual ~WeightStore() = default;
  using Make = std::function<Tensor(const Tensor& source)>;
  /// The packing of `source` under `key` (kernel and packing format); made on first use, of the source
  /// without its denormal numbers. `make` may give back what it gets: such weights are used as they lie.
  virtual Tensor packed(const Tensor& source, const std::string& key, const Make& make) = 0;
  /// The same for constants that are no weights: all their numbers stay.
  virtual Tensor moved(const Tensor& source, const std::string& key, const Make& make) = 0;
};

}  // namespace lamina
