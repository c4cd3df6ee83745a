#pragma once
/// Numbers of a tensor that a protocol buffer holds in a repeated field, as TensorProto of ONNX and of
/// TensorFlow do.
#include <cstdint>
#include <string_view>
#include <vector>

#include "lamina/tensor.h"

namespace lamina {

class WireNumbers {
 public:
  /// Reads all numbers of the message's `field`: floats for f32, doubles for f64, integers for other types.
  /// Throws protozero::exception and Error(bad_file).
  WireNumbers(std::string_view message, std::uint32_t field, ElementType type);

  std::size_t size() const;
  /// Stores the numbers in a tensor of the given type that has room for as many: one in each element, or in
  /// each byte if an element has fewer than 8 bits.
  void store(Tensor& to) const;

 private:
  std::vector<float> floats_;
  std::vector<double> doubles_;
  std::vector<std::int64_t> integers_;
};

}  // namespace lamina
