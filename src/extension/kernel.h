#pragma once
/// Kernels of libraries for nodes with known shapes: what create() made, and calls of run().
#include <memory>
#include <string>
#include <vector>

#include "extension/border.h"

namespace lamina {

/// A node whose shapes are known, as a kernel of a library sees it.
struct KernelNode {
  Op op;              ///< of a CustomOp
  std::string label;  ///< what errors call the node; empty: whoever catches them knows it
  std::vector<KnownTensor> in, out;
};

/// The types and layouts of one node in one configuration; layouts are the border's numbers.
struct KernelForm {
  std::size_t configuration = 0;  ///< SIZE_MAX: the reference, on plain tensors
  std::vector<std::int32_t> in, out;
};
/// All forms in which the configuration takes the node, several where it takes any layout; or why none.
/// `accepts` of the library is not asked.
struct KernelForms {
  std::vector<KernelForm> forms;
  std::string mismatch;
};
KernelForms forms_of(const KernelNode& node, std::size_t configuration);
/// "plain, in_place: input 0 is f64, wanted f32; ...": the table of what was tried.
std::string mismatches_of(const KernelNode& node);
/// The reference on plain tensors.
KernelForm reference_form(const KernelNode& node);

/// Whether all ports that want a constant have one; kernels are only made of such nodes.
Verdict has_constants(const KernelNode& node);
/// Throws Error(unsupported) where one has none.
void require_constants(const KernelNode& node);

/// Immutable, shared by threads.
class CustomKernel {
 public:
  /// Calls create(), or load() of what state() of such a kernel gave. Throws Error(extension) when the
  /// library fails.
  CustomKernel(KernelNode node, KernelForm form, const Tensor* state = nullptr);
  /// A kernel without an instance, to ask for scratch memory.
  static CustomKernel bare(KernelNode node, KernelForm form) {
    return {Bare{}, std::move(node), std::move(form)};
  }
  ~CustomKernel();
  CustomKernel(const CustomKernel&) = delete;
  CustomKernel& operator=(const CustomKernel&) = delete;

  const KernelNode& node() const { return node_; }
  const KernelForm& form() const { return form_; }
  const DeclaredConfiguration& configuration() const;
  const CustomOp& op() const { return *op_; }
  const std::string& where() const { return where_; }
  void* instance() const { return instance_; }

  /// Bytes of scratch memory of a run.
  std::size_t scratch() const;
  /// What load() makes another one of. Only where the operation has that.
  Tensor state() const;
  /// Constant inputs that prepare() takes, so that run() does not get them; none without prepare().
  const std::vector<std::size_t>& prepared_inputs() const { return prepared_; }
  /// Size of the prepared block of constant inputs, 64-byte aligned. Only for nodes with such inputs.
  std::size_t prepared_bytes() const;
  void prepare_into(void* block) const;
  Tensor prepare() const;
  /// Drops the constants; to be called after prepare(), before runs.
  void forget_constants();
  /// What a block depends on, besides the content of the first constant; the same in each process. Contents
  /// of the others are in it by their XXH3 of 128 bits. The first one is the source of the packing: the store
  /// knows it by its address, which nothing else gets while an entry has it, and files by that hash.
  std::string prepare_key() const;

 private:
  struct Bare {};
  CustomKernel(Bare, KernelNode node, KernelForm form);
  std::vector<std::size_t> inputs_to_prepare() const;
  std::vector<KnownTensor> aligned_inputs() const;
  void make(const Tensor* state);
  std::size_t bytes_by(lamina_status (*function)(const lamina_node*, std::size_t*), std::string_view name,
                       void* instance) const;
  void write_by(lamina_status (*function)(const lamina_node*, void*), std::string_view name,
                void* block) const;
  KernelNode node_;
  KernelForm form_;
  const CustomOp* op_;  // of node_.op
  std::string where_;
  std::vector<std::size_t> prepared_;
  void* instance_ = nullptr;
};

/// What a kernel's state depends on, the same in each process.
std::string state_key(const KernelNode& node, const KernelForm& form);

/// Why accepts() refuses the node, or yes. Throws nothing.
Verdict accepted(const KernelNode& node, std::size_t configuration);

/// A kernel with the memory of one run. Not thread-safe.
class CustomCall {
 public:
  CustomCall(const CustomKernel& kernel, Tensor prepared);
  /// Pointers are null for absent inputs, for those of the prepared block, and for outputs that run()
  /// allocates.
  void bind(const void* const* in, void* const* out, void* scratch, std::size_t scratch_bytes,
            const lamina_stages* stages = nullptr);
  void run();
  /// After a run: readers rely on zeros behind the last channel, and kernels may have left what was there.
  void clear_padding();
  lamina_context& context() { return context_; }
  BorderTensor& out(std::size_t i) { return *out_[i]; }

 private:
  const CustomKernel& kernel_;
  Tensor prepared_;
  lamina_status (*function_)(const lamina_call*);
  lamina_context context_;
  std::vector<std::unique_ptr<BorderTensor>> in_, out_;
  std::vector<const lamina_tensor*> in_pointers_, out_pointers_;
  lamina_call call_{};
};

/// Calls elementwise() of the operator, with what create() makes of it.
class ElementwiseKernel {
 public:
  /// `shape`: of what it will run on, as far as it is known.
  ElementwiseKernel(const Op& op, const std::string& label, const Shape& shape);
  ~ElementwiseKernel();
  ElementwiseKernel(const ElementwiseKernel&) = delete;
  ElementwiseKernel& operator=(const ElementwiseKernel&) = delete;
  void operator()(const float* in, float* out, std::size_t count) const;
  /// A call changed the mode of floating-point arithmetic, which is as it was again.
  bool rounding_changed() const { return rounding_changed_; }

 private:
  Op op_;
  const CustomOp* custom_;
  std::string where_;
  void* instance_ = nullptr;
  mutable std::atomic<bool> rounding_changed_ = false;
};

/// Whether the element-wise function takes the node.
bool computes_in_f32(const KernelNode& node);
/// The sizes of an output that is not made by allocate_output(); Error(extension) where inference left them
/// open.
Dims known_sizes(const CustomKernel& kernel, std::size_t output);
/// Throws Error(extension) where a kernel may not allocate an output so; `again`: it has done it before.
void check_allocation(const CustomKernel& kernel, std::size_t output, const Dims& dims, bool again);

/// The node's outputs on plain tensors (not valid: absent): by the reference, unless `kernel` is wanted and
/// there is one. Throws Error(unsupported) where no configuration takes the node, Error(extension) when the
/// library fails. Of `node` op and label count.
std::vector<Tensor> run_custom(KernelNode node, const std::vector<Tensor>& in,
                               const std::vector<TensorType>& out, bool kernel);

/// One form on plain tensors, with whatever constants there are. SIZE_MAX for the form's configuration: the
/// reference.
std::vector<Tensor> run_form(const CustomKernel& kernel, const Tensor& prepared,
                             const std::vector<Tensor>& in);

}  // namespace lamina
