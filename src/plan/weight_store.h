#pragma once
/// The packed weights of one compiled model.
#include <map>
#include <mutex>

#include "kernels/kernel.h"

namespace lamina {

class ModelWeights final : public WeightStore {
 public:
  Tensor packed(const Tensor& source, const std::string& key, const std::function<Tensor()>& make) override;
  std::size_t bytes() const;
  /// Lets go of the constants that were packed. Nothing more may be packed afterwards.
  void forget_sources();

 private:
  struct Entry {
    Tensor source;  // kept so that its address stays taken
    Tensor packed;
  };
  mutable std::mutex mutex_;
  std::map<std::pair<const void*, std::string>, Entry> entries_;
};

}  // namespace lamina
