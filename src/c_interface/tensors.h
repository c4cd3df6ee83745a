#pragma once
/// Tensors of the C interface.
#include <memory>

#include "c_interface/ports.h"

namespace lamina::c_interface {

/// A shape from a caller's array.
Dims dims_of(std::size_t rank, const std::int64_t* dims);
/// The shapes of a caller's arrays, one for each of so many inputs. Throws Error(bad_input) for another
/// number.
std::vector<Dims> shapes_of(std::size_t inputs, std::size_t count, const std::size_t* ranks,
                            const std::int64_t* const* dims);
std::unique_ptr<lamina_c_tensor> handle_of(Tensor tensor);
/// The tensor of a handle; none for null.
Tensor tensor_or_none(const lamina_c_tensor* handle);
/// Fills the caller's struct.
void show(const Tensor& tensor, lamina_c_tensor_info* to);

}  // namespace lamina::c_interface
