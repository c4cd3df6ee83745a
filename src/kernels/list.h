#pragma once
/// The list of kernels: one function per family, in the order in which they are asked.
#include "kernels/kernel.h"

namespace lamina {

void add_view_kernels(std::vector<Kernel>& list);  // reshapes that move nothing
void add_onednn_kernels(std::vector<Kernel>& list);
void add_native_kernels(std::vector<Kernel>& list);
void add_reference_kernel(std::vector<Kernel>& list);  // takes everything

/// Any layout to any other by a strided copy: what make_reorder falls back to.
std::unique_ptr<Executable> make_strided_reorder(ElementType type, const Dims& shape, Layout from, Layout to);

}  // namespace lamina
