#pragma once
/// The packed weights of one compiled model.
#include <chrono>
#include <map>
#include <mutex>
#include <optional>

#include "base/denormals.h"
#include "kernels/kernel.h"

namespace lamina {

/// A constant's packing.
struct Packing {
  Tensor source;
  std::string key;  ///< kernel and packing format, type and shape of the source
  Tensor packed;
  Denormals denormals;  ///< of the source
};

/// Packings that were made before (src/saved). Thread-safe.
class KeptPackings {
 public:
  virtual ~KeptPackings() = default;
  /// A packing of a constant with the same content under that key; nothing when it has to be made. Throws
  /// Error(bad_file) when it can neither be found nor made, because the source has no data.
  virtual std::optional<Packing> find(const Tensor& source, const std::string& key) const = 0;
};

/// A packing lives as long as a plan uses it: plans for other shapes may fold other constants, and theirs
/// must not pile up.
class ModelWeights final : public WeightStore {
 public:
  explicit ModelWeights(std::shared_ptr<const KeptPackings> kept = nullptr) : kept_(std::move(kept)) {}
  /// Counts of denormal numbers in the constants whose packings are in use.
  Denormals denormals() const;
  std::size_t bytes() const;
  /// The packings in use whose constants are still known.
  std::vector<Packing> packings() const;
  /// Seconds during which something was being packed.
  double packing_seconds() const;
  /// Releases the constants that were packed. Nothing more may be packed afterwards.
  void forget_sources();
  /// Releases the constants whose packings no plan uses any more.
  void sweep();

 private:
  struct Entry {
    Tensor source;  // kept so that its address stays taken
    bool as_it_lies = false;
    Denormals denormals;  // of the source
    std::weak_ptr<const Tensor> packed;
  };
  using Clock = std::chrono::steady_clock;
  Tensor do_packed(const Tensor& source, const std::string& key, const Make& make) override;
  Tensor do_moved(const Tensor& source, const std::string& key, const Make& make) override;
  Tensor find_or_make(const Tensor& source, const std::string& key, const Make& make,
                      const Denormals& denormals);
  Tensor make_timed(const Tensor& source, const Make& make);

  std::shared_ptr<const KeptPackings> kept_;
  mutable std::mutex mutex_;
  std::map<std::pair<const void*, std::string>, Entry> entries_;
  int packing_ = 0;  // how many at this moment
  Clock::time_point packing_since_;
  Clock::duration packed_for_{};
};

}  // namespace lamina
