#pragma once
/// The windows of some points, and their counts by panels of outputs.
#include "kernels/native/binary/packing.h"

namespace lamina::binary {

class Windows {
 public:
  static constexpr std::int64_t kMost = 60;  ///< points

  /// Weights, starts and limits as `packing` has packed them; limits where signs are wanted.
  Windows(const Packing& packing, const Tensor& weights, const Tensor& starts, const Tensor& limits);

  /// Points [first, first + count) of a picture's outputs, of which only columns [from, from + width) are
  /// there. `image`: what windows read of it.
  void find(const std::uint8_t* image, std::int64_t from, std::int64_t width, std::int64_t first,
            std::int64_t count);
  /// The outputs of a panel. `tile` says where those of the first point go, and what happens to them.
  void run(const Panel& panel, Tile tile) const;

 private:
  const Packing& p_;
  const std::uint8_t* weights_;
  const float* starts_;
  const std::uint16_t* limits_;
  std::int64_t count_ = 0;
  const std::uint8_t* x_[kMost];
  const float* start_[kMost];
  const std::uint16_t* limit_[kMost];
};

}  // namespace lamina::binary
