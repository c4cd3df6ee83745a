#pragma once
/// One element of a tensor in the text form, both ways: "-1.5", "nan(0x7fc00001)", "true", "12". Internal to
/// text_*.cc.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lamina/tensor.h"

namespace lamina::text {

std::string element_text(const Tensor& tensor, std::size_t index);
/// The shortest text that gives the number of these bits again.
std::string float_text(ElementType type, std::uint64_t bits);
/// The bits that the text stands for; nothing if it is no value of that type.
std::optional<std::uint64_t> parse_bits(std::string_view token, ElementType type);
/// Sets an element of a tensor that holds zeros.
void put_bits(Tensor& tensor, std::size_t index, std::uint64_t bits);

}  // namespace lamina::text
