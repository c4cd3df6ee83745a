#pragma once
/// Seeded numbers that are the same on every machine.
#include <cstdint>

#include "lamina/tensor.h"

namespace lamina {

/// splitmix64: the i-th number of a seed depends on seed and i only.
class SplitMix {
 public:
  explicit SplitMix(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  /// A number in [0, bound), bound > 0; the bias is below bound / 2^64.
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  /// A number in [-1, 1), a multiple of 2^-23: exact in f32.
  float uniform() { return static_cast<float>(next() >> 40) * 0x1p-23f - 1.0f; }

 private:
  std::uint64_t state_;
};

/// A tensor of seeded values: floats uniform in [-1, 1), signed integers -4..4, unsigned ones 0..8 (or as
/// many as fit), booleans and u1 either. One number of the generator per element, in order.
Tensor seeded_tensor(ElementType type, Dims shape, std::uint64_t seed);

}  // namespace lamina
