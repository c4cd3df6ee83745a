#pragma once
/// The packed weights of one compiled model.
#include <chrono>
#include <map>
#include <mutex>

#include "base/denormals.h"
#include "kernels/kernel.h"

namespace lamina {

/// A packing lives as long as a plan uses it: plans for other shapes may fold other constants, and theirs
/// must not pile up.
class ModelWeights final : public WeightStore {
 public:
  Tensor packed(const Tensor& source, const std::string& key, const Make& make) override;
  Tensor moved(const Tensor& source, const std::string& key, const Make& make) override;
  /// What was denormal in the constants whose packings are in use.
  Denormals denormals() const;
  std::size_t bytes() const;
  /// Seconds during which something was being packed.
  double packing_seconds() const;
  /// Lets go of the constants that were packed. Nothing more may be packed afterwards.
  void forget_sources();
  /// Lets go of the constants whose packings no plan uses any more.
  void sweep();

 private:
  struct Entry {
    Tensor source;  // kept so that its address stays taken
    bool as_it_lies = false;
    Denormals denormals;  // of the source
    std::weak_ptr<const Tensor> packed;
  };
  using Clock = std::chrono::steady_clock;
  Tensor find_or_make(const Tensor& source, const std::string& key, const Make& make,
                      const Denormals& denormals);
  Tensor make_timed(const Tensor& source, const Make& make);

  mutable std::mutex mutex_;
  std::map<std::pair<const void*, std::string>, Entry> entries_;
  int packing_ = 0;  // how many at this moment
  Clock::time_point packing_since_;
  Clock::duration packed_for_{};
};

}  // namespace lamina
