#pragma once
/// The list of kernels: one function per family, in the order in which they are asked.
#include "kernels/kernel.h"

namespace lamina {

void add_view_kernels(std::vector<Kernel>& list);  // reshapes that move nothing
void add_onednn_kernels(std::vector<Kernel>& list);
void add_native_kernels(std::vector<Kernel>& list);
void add_extension_kernels(std::vector<Kernel>& list);  // of libraries of custom layers
void add_reference_kernel(std::vector<Kernel>& list);   // takes everything

/// Makes offers that take only the first stages of the node's epilogue take all of them: the later ones pass
/// over the output once more, in place, as soon as it is written. Offers where that is not possible stay as
/// they are, with a sentence that says why.
void add_later_stages(const NodeView& view, Answers& answers);

/// Any layout to any other by a strided copy.
std::unique_ptr<Executable> make_strided_reorder(ElementType type, const Dims& shape, Layout from, Layout to);

}  // namespace lamina
