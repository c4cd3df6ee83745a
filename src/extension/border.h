#pragma once
/// Structs of the border made of ours, and what their pointers point to; calls of a library's functions.
#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/floating_point.h"
#include "extension/custom_op.h"
#include "graph/shape.h"

/// What a call of a library's function is about (declared in lamina/extension.h).
struct lamina_context {
  explicit lamina_context(const lamina::CustomOp* custom) : op(custom) {}
  const lamina::CustomOp* op;  ///< null in rules
  std::mutex mutex;
  bool failed = false;
  std::string error;                 ///< the first one
  std::vector<std::string> symbols;  ///< names of unknown sizes: the number of one is its index and 1
  bool infers = false;
  std::vector<std::optional<lamina::TensorType>> outputs;  ///< by set_output
  std::function<void*(std::size_t, const lamina::Dims&)> allocate;
  std::atomic<bool> rounding_changed = false;  ///< by a function of the library; it is as it was again

  void fail(std::string text) noexcept;
};

namespace lamina {

/// The engine's functions, for all libraries.
const lamina_host& extension_host();

/// Whether the border has that member of a struct other than lamina_host: "lamina_operation.elementwise".
bool is_member(std::string_view name);

/// Calls a function of the library: whatever goes wrong in it is thrown as Error(extension), named by `where`
/// and `what` ("run"). The rounding mode of floating-point numbers is what it was before.
void call_library(lamina_context& context, const std::string& where, std::string_view what,
                  const std::function<lamina_status()>& function);
/// Calls a kernel without an allocation; text is made only if something is wrong.
void call_kernel(lamina_context& context, const std::string& where, lamina_status (*run)(const lamina_call*),
                 const lamina_call& call);

/// The mode of floating-point arithmetic, of vectors and of the x87 (long double, fegetround), is at the end
/// what it was at the beginning. Says in `changed` that it was not.
class KeepsRounding {
 public:
  explicit KeepsRounding(std::atomic<bool>& changed) : changed_(changed) {}
  ~KeepsRounding();
  KeepsRounding(const KeepsRounding&) = delete;
  KeepsRounding& operator=(const KeepsRounding&) = delete;

 private:
  std::atomic<bool>& changed_;
  const FloatingPoint before_ = FloatingPoint::here();
};

class BorderTensor {
 public:
  BorderTensor(ElementType type, const Dims& shape, std::int32_t layout, const void* data = nullptr);
  BorderTensor(const BorderTensor&) = delete;
  BorderTensor& operator=(const BorderTensor&) = delete;
  void point(const void* data) { tensor_.data = const_cast<void*>(data); }
  void resize(const Dims& shape);  ///< plain
  void clear_padding();            ///< of blocked ones, in memory
  const lamina_tensor* get() const { return &tensor_; }

 private:
  void describe(std::int32_t layout);
  ElementType type_;
  Dims dims_, strides_;
  lamina_tensor tensor_{};
};

/// What is known of a node's tensors.
struct KnownTensor {
  bool present = true;
  TensorType type;
  Tensor constant = {};  ///< aligned, or not valid
};

class BorderValue {
 public:
  BorderValue(lamina_context& context, const KnownTensor& known);
  BorderValue(const BorderValue&) = delete;
  BorderValue& operator=(const BorderValue&) = delete;
  const lamina_value* get() const { return &value_; }

 private:
  std::vector<std::int64_t> low_, high_;
  std::vector<std::uint64_t> symbols_;
  Tensor constant_;
  std::optional<BorderTensor> tensor_;
  lamina_value value_{};
};

/// A lamina_node and all that it points to.
class BorderNode {
 public:
  BorderNode(lamina_context& context, const std::vector<KnownTensor>& in, const std::vector<KnownTensor>& out,
             std::int32_t configuration = -1, void* instance = nullptr);
  /// While so many outputs are inferred.
  BorderNode(lamina_context& context, const std::vector<KnownTensor>& in, std::size_t outputs);
  BorderNode(const BorderNode&) = delete;
  BorderNode& operator=(const BorderNode&) = delete;
  const lamina_node* get() const { return &node_; }

 private:
  void add(lamina_context& context, const std::vector<KnownTensor>& from,
           std::vector<const lamina_value*>& to);

  std::deque<BorderValue> values_;
  std::vector<const lamina_value*> in_, out_;
  lamina_node node_{};
};

}  // namespace lamina
