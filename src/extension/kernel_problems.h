#pragma once
/// What is wrong with a kernel of a library, found out by running it on these inputs: what it says, writes,
/// keeps and leaves as it was. Runs code of others: in a process of its own (base/subprocess.h).
#include <string>
#include <vector>

#include "extension/kernel.h"

namespace lamina {

/// Whether the library takes that form of the node on these inputs.
bool takes_inputs(const KernelNode& node, const KernelForm& form, const std::vector<Tensor>& in);

/// Everything that is tried with one form: a sentence for the first problem, or nothing. `wanted`: the
/// results as they ought to be, where they are known.
std::string kernel_problem(const KernelNode& node, const KernelForm& form, const std::vector<Tensor>& in,
                           const std::vector<Tensor>* wanted);

/// Problems of the element-wise function, on the first input.
std::string elementwise_problem(const KernelNode& node, const std::vector<Tensor>* wanted, const Tensor& in);

}  // namespace lamina
