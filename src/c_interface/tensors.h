#pragma once
/// Tensors of the C interface.
#include <memory>

#include "c_interface/ports.h"

namespace lamina::c_interface {

/// A shape from a caller's array.
Dims dims_of(std::size_t rank, const std::int64_t* dims);
std::unique_ptr<lamina_c_tensor> handle_of(Tensor tensor);
/// The tensor of a handle; none for null.
Tensor tensor_or_none(const lamina_c_tensor* handle);
/// Fills the caller's struct.
void show(const Tensor& tensor, lamina_c_tensor_info* to);

}  // namespace lamina::c_interface
