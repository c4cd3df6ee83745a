#pragma once
/// Places that strides tell, so that planning makes no lists as long as tensors.
#include <array>
#include <cstdint>
#include <vector>

namespace lamina {

/// All combinations of the indices of some axes, the last running fastest, and how far each of kOperands
/// tensors has moved on there.
template <std::size_t kOperands>
class Positions {
 public:
  using Offsets = std::array<std::int64_t, kOperands>;

  /// An axis inside those before.
  void add(std::int64_t size, const Offsets& strides) {
    count_ *= size;
    if (size == 1) return;
    if (!axes_.empty()) {  // as one axis, where all tensors go on evenly
      auto& last = axes_.back();
      bool even = true;
      for (std::size_t k = 0; k < kOperands; ++k) even = even && last.strides[k] == strides[k] * size;
      if (even) {
        last = {last.size * size, strides};
        return;
      }
    }
    axes_.push_back({size, strides});
  }

  std::int64_t count() const { return count_; }

  Offsets operator[](std::int64_t index) const {
    Offsets at{};
    for (std::size_t a = axes_.size(); a-- > 0;) {
      const auto& axis = axes_[a];
      const auto i = a == 0 ? index : index % axis.size;
      if (a != 0) index /= axis.size;
      for (std::size_t k = 0; k < kOperands; ++k) at[k] += i * axis.strides[k];
    }
    return at;
  }

 private:
  struct Axis {
    std::int64_t size;
    Offsets strides;
  };
  std::vector<Axis> axes_;
  std::int64_t count_ = 1;
};

/// Strides with which a dense tensor is read where it is broadcast to `rank` axes: 0 where it repeats.
inline std::vector<std::int64_t> broadcast_strides(const std::vector<std::int64_t>& dims, std::size_t rank) {
  std::vector<std::int64_t> strides(rank, 0);
  std::int64_t step = 1;
  for (std::size_t i = dims.size(); i-- > 0; step *= dims[i])
    if (dims[i] != 1) strides[rank - dims.size() + i] = step;
  return strides;
}

}  // namespace lamina
