#pragma once
/// Walks a GraphDef and builds the graph: names, order, inputs and outputs. Converters give nodes their
/// meaning.
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/loaded.h"
#include "formats/read_error.h"
#include "formats/tensorflow/call.h"
#include "formats/tensorflow/links.h"
#include "formats/tensorflow/proto.h"

namespace lamina::tensorflow {

/// An error that already says which node of the file it is about.
struct FileNodeError : ReadError {
  using ReadError::ReadError;
};

/// Runs `body` so that its errors name the node.
template <class F>
auto naming(const NodeDef& node, F body) try {
  return body();
} catch (const FileNodeError&) {
  throw;
} catch (const Error& e) {
  const auto* of_node = dynamic_cast<const NodeError*>(&e);
  throw FileNodeError(
      e, fmt::format("node \"{}\" ({}): {}", node.name, node.op, of_node ? of_node->reason : e.what()));
}

/// The graph to which nodes are added: the model's, or the body of a loop.
struct Scope {
  explicit Scope(Graph& g, Scope* a = nullptr, std::uint32_t f = 0) : graph(g), around(a), frame(f) {}
  Graph& graph;
  Scope* around;  ///< of the same graph for a condition that is asked before a loop begins
  std::uint32_t frame;
  std::map<ValueId, ValueId> inside{};  ///< by what they are around
  Values captured{};                    ///< values around that became parameters, in order
  std::map<std::pair<ValueId, Ints>, ValueId> transposed{};  ///< weights, by what they were and the order
};

class Importer {
 public:
  /// `owner` keeps the memory that the graph's texts and tensors lie in.
  Importer(const GraphDef& def, std::shared_ptr<const void> owner, const ReadSettings& settings);
  Loaded run();

  // For converters.
  Graph& graph() { return scope_->graph; }
  Scope& scope() { return *scope_; }
  int folding_budget = 200'000;             ///< nodes that may be evaluated while reading
  std::int64_t constants_budget = 1 << 27;  ///< elements of constants that are made of a few numbers
  /// Takes so many outputs of a node, which a file can ask for with few bytes. Throws when that is too much.
  void spend_outputs(std::int64_t count);
  /// The node that a reference leads to past what only hands values on.
  const NodeDef& origin(std::string_view reference) const;

 private:
  friend class LoopImport;
  bool is_left_by_tensorflow(std::uint32_t node) const;
  void note_optional_inputs();
  void find_outputs();
  void find_needed();
  void import_node(std::uint32_t node);
  Values convert(std::uint32_t node);
  Values convert_or_give_up(std::uint32_t node, Values inputs, Converter converter);
  Values import_constant(const NodeDef& node);
  Values import_placeholder(const NodeDef& node);
  Values import_default(const NodeDef& node, const Values& inputs);
  Values import_merge(std::uint32_t node);
  std::optional<Values> import_of_loop(std::uint32_t node);
  Values leave_loop(std::uint32_t exit);
  Values make_custom(std::uint32_t node, const std::shared_ptr<const DeclaredOperation>& operation,
                     Values inputs);
  Attribute attribute_of(std::string_view name, const AttrValue& a);
  Values make_opaque(const NodeDef& node, const Values& inputs);
  std::uint32_t ports(std::uint32_t node) const;
  Values inputs_of(std::uint32_t node);
  ValueId lookup(Ref ref) { return lookup(*scope_, ref); }
  ValueId lookup(Scope& scope, Ref ref);
  /// The node is in the scope's loop or in one around it: what others have made is in graphs that are done.
  bool reaches(const Scope& scope, std::uint32_t node) const;
  ValueId carried_in(Scope& scope, ValueId around);
  void bind_outputs(std::uint32_t node, const Values& values, std::size_t first_value);
  void add_results();
  std::optional<Tensor> frozen(const NodeDef& node, const TensorType& type);
  std::vector<std::optional<bool>> known_booleans();
  bool is_tainted(const Values& inputs) const;
  void list_unsupported(const NodeDef& node, const std::string& reason);

  std::int64_t outputs_budget_ = 1 << 18;
  std::int64_t loop_budget_ = 1'000'000;  // nodes of loops, which are read more than once
  const GraphDef& def_;
  std::shared_ptr<const void> owner_;
  const ReadSettings& settings_;
  Links links_;
  std::optional<Branches> branches_;
  Loaded loaded_;
  OperatorNotes notes_{loaded_.operators, settings_.gate};
  Scope outermost_{loaded_.graph};
  Scope* scope_ = &outermost_;
  std::vector<Values> values_;          // by node
  std::vector<std::uint32_t> highest_;  // port of each node that something reads
  std::vector<bool> needed_;
  std::vector<std::uint32_t> outputs_;
  std::set<std::string, std::less<>> settable_;  // not met yet
  std::map<std::pair<std::string, std::string>, std::size_t> unsupported_;
};

inline bool is_placeholder(std::string_view op) { return op == "Placeholder" || op == "PlaceholderV2"; }

}  // namespace lamina::tensorflow
