#pragma once
/// Types, attributes and constants of the text form, both ways. Internal to text_*.cc.
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/op.h"
#include "graph/shape.h"
#include "graph/text_scan.h"

namespace lamina::text {

std::string shape_text(const Shape& shape);
std::string type_text(const TensorType& type);

/// Prints tensors; large ones go to the side file.
class ConstantWriter {
 public:
  ConstantWriter(bool self_contained, std::size_t inline_elements)
      : self_contained_(self_contained), inline_elements_(inline_elements) {}
  /// "i64[2] {1, 2}" or "f32[64,3,3,3] data(0)"
  std::string operator()(const Tensor& tensor);
  std::vector<std::byte> take_data() { return std::move(data_); }

 private:
  bool self_contained_;
  std::size_t inline_elements_;
  std::vector<std::byte> data_;
  std::map<std::pair<const std::byte*, std::size_t>, std::size_t> offsets_;  // of tensors that share memory
};

std::string attribute_text(const Attribute& value, ConstantWriter& constants);

Shape parse_shape(Scanner& s);
TensorType parse_type(Scanner& s);

/// Reads what ConstantWriter prints, and seed(n) and fill(v).
class ConstantParser {
 public:
  ConstantParser(std::span<const std::byte> data, std::size_t generated_elements);
  Tensor parse(Scanner& s);

 private:
  Tensor from_data(Scanner& s, ElementType type, const Dims& dims, std::size_t count);
  Tensor from_list(Scanner& s, ElementType type, const Dims& dims, std::size_t count);
  void generate(Scanner& s, std::size_t count);

  std::shared_ptr<const std::byte> data_;
  std::size_t data_size_;
  std::size_t generated_left_;
};

/// An attribute's value, of the same kind as `like`.
Attribute parse_attribute(Scanner& s, std::string_view name, const Attribute& like,
                          ConstantParser& constants);

}  // namespace lamina::text
