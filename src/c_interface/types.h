#pragma once
/// Element types by the numbers of lamina/c.h.
#include <cstdint>

#include "lamina/tensor.h"

namespace lamina::c_interface {

std::int32_t number_of(ElementType type) noexcept;
/// Throws Error(bad_input) for a number that is no type.
ElementType type_of(std::int32_t number);

}  // namespace lamina::c_interface
