#pragma once
/// The messages of ONNX, TensorFlow and Caffe, as far as mutations change them.
#include <cstdint>
#include <string_view>
#include <vector>

namespace lamina::testing {

struct ProtobufField {
  std::uint32_t number;
  std::string_view name;
  char type;  ///< message, integer, float, double, string, bytes: by their first letters
  std::string_view message = {};
};

/// The fields of a message that have names here. Throws std::out_of_range for another message.
const std::vector<ProtobufField>& fields_of(std::string_view message);

}  // namespace lamina::testing
