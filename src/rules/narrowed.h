#pragma once
/// The constants of a model as bf16, for all its plans.
#include <map>
#include <memory>
#include <mutex>

#include "lamina/tensor.h"

namespace lamina {

/// Each is converted once and lives as long as a plan has it. Thread-safe.
class NarrowedConstants {
 public:
  Tensor operator()(const Tensor& source);

 private:
  /// The source stays: its address is what it is found by.
  struct Pair {
    Tensor source, narrow;
  };
  std::mutex mutex_;
  std::map<const void*, std::weak_ptr<const Pair>> pairs_;
};

}  // namespace lamina
