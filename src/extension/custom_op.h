#pragma once
/// The operator of a library: one class for all of them, whose name, attributes, inference and evaluation are
/// the library's.
#include "extension/declaration.h"
#include "graph/saved_name.h"

namespace lamina {

class CustomOp final : public AnyOp, public HasSavedName {
 public:
  explicit CustomOp(std::shared_ptr<const DeclaredOperation> declared);
  const DeclaredOperation& declared() const { return *declared_; }
  /// "libgate.so: com.example:Gate"
  std::string where() const { return declared_->origin.name + ": " + declared_->name(); }

  /// The attribute of that name; null: there is none. `texts`: of LAMINA_STRINGS, for the border.
  struct Value {
    Attribute value;
    bool given = false;  ///< by the node or by the declaration
    std::vector<const char*> texts;
    lamina_tensor tensor = {};
    Dims strides = {};  ///< of the tensor
  };
  const Value* find(std::string_view name, std::int32_t kind) const;
  /// Throws Error(bad_file) where an attribute has no value.
  void require_attributes() const;

  const OpInfo& info() const override { return declared_->info; }
  const void* fields() const override { return this; }
  const void* type() const override { return declared_.get(); }
  std::vector<NamedAttribute> attributes() const override;
  std::vector<NamedAttribute> changed_attributes() const override;
  void set(std::string_view name, const Attribute& value) override;
  std::unique_ptr<AnyOp> copy() const override;
  void infer(InferContext& c) const override;
  void evaluate(EvalContext& c) const override;
  std::string display_name() const override { return declared_->type; }
  /// "com.example:Gate@1"
  std::string saved_name() const override { return declared_->saved_name(); }
  Verdict permute(PermuteContext& c) const override;
  std::optional<std::vector<Dim>> shape_value(ShapeValueContext&) const override { return std::nullopt; }
  NodeWork work(const WorkContext& c) const override;
  bool can_decompose(const Graph&, const Node&) const override { return false; }
  std::vector<NodeId> decompose(Graph&, const Node&) const override { return {}; }

 private:
  void describe(std::size_t i);
  std::shared_ptr<const DeclaredOperation> declared_;
  std::vector<Value> values_;  // by declared attribute
};

/// The library's operator, or null where it is one of lamina's own.
inline const CustomOp* custom_op(const Op& op) {
  return op.valid() ? dynamic_cast<const CustomOp*>(&*op) : nullptr;
}

}  // namespace lamina
