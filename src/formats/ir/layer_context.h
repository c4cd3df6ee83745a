#pragma once
/// What a converter sees of its layer.
#include <optional>
#include <string>
#include <vector>

#include "formats/ir/builder.h"

namespace lamina::ir {

class LayerContext {
 public:
  LayerContext(GraphBuilder& builder, std::uint32_t index, std::vector<ValueId>& outputs);

  const Layer& layer() const { return layer_; }
  std::uint32_t index() const { return index_; }
  int opset() const { return layer_.opset; }
  Reading& reading() { return builder_.reading(); }
  Graph& graph() { return builder_.graph(); }
  GraphBuilder& builder() { return builder_; }

  // Inputs.
  std::size_t inputs() const { return layer_.feeds.size(); }
  ValueId in(std::size_t i);  ///< throws when there is none
  ValueId in_or_none(std::size_t i);
  std::vector<ValueId> all_inputs();
  // Copies: constants join the graph when they are first asked for, and move what it holds.
  TensorType type(std::size_t i) { return graph().type(in(i)); }
  Shape shape(std::size_t i) { return type(i).shape; }
  std::size_t rank(std::size_t i);  ///< throws when it is unknown
  std::optional<Ints> constant_ints(std::size_t i);
  void want_inputs(std::size_t low, std::size_t high);

  // Attributes of <data>; malformed ones throw.
  bool has(const char* name) const { return !layer_.data.attribute(name).empty(); }
  std::string text(const char* name, const std::string& fallback = {}) const;
  bool boolean(const char* name, bool fallback) const;
  Ints integers(const char* name) const;
  /// The operator with what <data> says, then with `also`.
  Op op(std::string_view name, const std::vector<NamedAttribute>& also = {});
  /// The operator with these attributes and nothing of <data>.
  static Op plain_op(std::string_view name, const std::vector<NamedAttribute>& attributes = {});

  // Outputs.
  /// A helper node; its name gets the suffix.
  ValueId add(Op op, std::vector<ValueId> inputs, const std::string& suffix);
  ValueId constant(Tensor tensor, const std::string& suffix);
  ValueId constant(const Ints& list, const std::string& suffix);
  /// The node that gives the layer's outputs.
  void finish(Op op, std::vector<ValueId> inputs, std::vector<Graph> bodies = {});
  void set_output(std::size_t port, ValueId value);
  std::size_t used_outputs() const;  ///< 1 + the last output that somebody reads

  template <class... A>
  [[noreturn]] void fail(fmt::format_string<A...> text, A&&... args) {
    fail_text(fmt::format(text, std::forward<A>(args)...));
  }
  template <class... A>
  void require(bool condition, fmt::format_string<A...> text, A&&... args) {
    if (!condition) fail_text(fmt::format(text, std::forward<A>(args)...));
  }

 protected:
  [[noreturn]] void fail_text(const std::string& text) const;

  GraphBuilder& builder_;
  std::vector<ValueId>& outputs_;

 private:
  Attribute parse_like(const NamedAttribute& like, std::string_view text) const;
  void check_range(const std::string& name, const Attribute& value) const;

  const std::uint32_t index_;
  const Layer& layer_;
};

}  // namespace lamina::ir
