#pragma once
/// Counts how often work asks whether it must stop.
#include <atomic>
#include <cstdint>
#include <limits>

#include "base/cancellation.h"

namespace lamina::testing {

/// Requests a stop after `most` questions. Thread safe.
class CountingSignal final : public StopSignal {
 public:
  explicit CountingSignal(std::int64_t most = std::numeric_limits<std::int64_t>::max()) : left_(most) {}
  bool stop_requested() const noexcept override {
    ++asked_;
    return --left_ < 0;
  }
  std::int64_t asked() const { return asked_; }

 private:
  mutable std::atomic<std::int64_t> left_, asked_{0};
};

}  // namespace lamina::testing
