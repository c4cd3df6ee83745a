#pragma once
/// Walks an ONNX model and builds the graph: names, order, functions, bodies. Converters give nodes their
/// meaning.
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "formats/loaded.h"
#include "formats/onnx/call.h"
#include "formats/onnx/order.h"
#include "formats/onnx/proto.h"
#include "formats/onnx/tensors.h"

namespace lamina::onnx {

inline constexpr int kDeepest = 48;  ///< bodies and functions inside each other

/// A call of a model-local function that is being inlined.
struct Frame {
  const FunctionProto* function = nullptr;
  std::map<std::string_view, const AttributeProto*> attributes;  ///< the call's, references resolved
  std::string prefix;                                            ///< for the names of values and nodes
  SourceId source;                                               ///< the calling node
};

/// Names of a graph, a body or a function.
struct Scope {
  Graph& graph;
  Scope* parent = nullptr;  ///< what a body may read (of the same graph for an inlined body); null for the
                            ///< main graph and for functions
  const Frame* frame = nullptr;  ///< the function that the nodes are in
  int depth = 0;
  std::unordered_map<std::string_view, ValueId> values;
  std::unordered_map<std::string_view, const TensorProto*> tensors;  ///< initialisers not read yet
  std::unordered_map<std::string_view, const SparseTensorProto*> sparse_tensors;
};

/// Values read by bodies, by the names they have there.
using Captures = std::vector<std::pair<std::string_view, ValueId>>;

/// The inputs that a node has for captured values; a sequence is passed as the values that it is made of.
Values captured_values(const Graph& graph, const Captures& captured);

/// Adds the values as results of a body, by their names.
void add_results(Graph& body, const Values& values);
/// Adds the values that are stacked over iterations as results of a body. `axes`: the axis that each is
/// joined along, which is counted from the front afterwards.
void add_stacked(Graph& body, const Values& stacked, Ints& axes);

/// How a body differs from its ONNX form.
struct BodyPlan {
  /// Adds the parameters and whatever comes before the nodes; returns the values of the ONNX body's inputs.
  std::function<Values(Graph& body)> begin;
  /// Adds the results, given the values of the ONNX body's outputs.
  std::function<void(Graph& body, const Values& outputs)> end;
};

class Importer {
 public:
  Importer(const ModelProto& model, const ModelSource& source, const ReadSettings& settings);
  Loaded run();

  // For converters.
  int folding_budget = 200'000;             ///< nodes that may be evaluated while reading
  int sequence_budget = 1'000'000;          ///< elements that all sequences may have together
  std::int64_t random_operators = 0;        ///< read so far, in bodies too
  std::int64_t constants_budget = 1 << 27;  ///< elements of constants that are made of a few numbers
  /// The value of that name, made when it is an initialiser; throws when there is none.
  ValueId lookup(Scope& scope, std::string_view name);
  Tensor read(const TensorProto& t) { return tensors_.read(t); }
  Tensor read(const SparseTensorProto& t) { return tensors_.read(t); }
  const AttributeProto* resolve(const Scope& scope, const AttributeProto& a) const;
  void warn(const std::string& text);
  /// Values of `scope` that the bodies read, constants left out (bodies get copies of those), in order of
  /// first use.
  Captures captures(Scope& scope, const std::vector<const GraphProto*>& bodies);
  /// How often a graph reads each name: its nodes, the bodies in it (each once), its outputs.
  std::map<std::string_view, int> reads(const GraphProto& graph);
  /// What has been listed and noted of the file so far, and the way back there: for bodies that are read
  /// again.
  struct Listed {
    std::vector<Unsupported> unsupported;
    std::map<std::tuple<std::string, std::string, std::int64_t, std::string>, std::size_t> index;
    std::size_t sources;
  };
  Listed listed() const;
  void take_back(Listed before);
  /// Reads a body; its last parameters are the captured values. Sequences that nothing reads are left in it
  /// when `plan.end` adds no results: who adds them later erases those.
  Graph import_body(Scope& scope, const GraphProto& proto, const Captures& captured, const BodyPlan& plan);
  /// Reads a body right into the scope's graph, with `own` as its inputs; returns its outputs.
  Values inline_body(Scope& scope, const GraphProto& proto, const Values& own = {});

 private:
  void import_inputs(Scope& scope);
  Shape shape_of(const ValueInfoProto& input) const;
  bool is_frozen(Scope& scope, const ValueInfoProto& input);
  Tensor default_of(const Scope& scope, const ValueInfoProto& input);
  Values results(Scope& scope, const GraphProto& proto);
  void declare_initializers(Scope& scope, const GraphProto& proto);
  void import_nodes(Scope& scope, const std::vector<NodeProto>& nodes);
  void import_node(Scope& scope, const NodeProto& node);
  Values convert(Scope& scope, const NodeProto& node, std::int64_t version, SourceId source);
  Values convert_or_give_up(Scope& scope, const NodeProto& node, std::int64_t version, std::size_t first_node,
                            Converter converter);
  Values call_function(Scope& scope, const NodeProto& node, const FunctionProto& function, SourceId source);
  Values make_custom(Scope& scope, const NodeProto& node, std::shared_ptr<const DeclaredOperation> operation);
  Values make_opaque(Scope& scope, const NodeProto& node, std::int64_t version);
  void list_unsupported(const Scope& scope, const NodeProto& node, std::int64_t version,
                        const std::string& reason);
  void list_unsupported(const std::string& type, const std::string& name);
  void bind_outputs(Scope& scope, const NodeProto& node, const Values& values, std::size_t first_value);
  const FunctionProto* function_of(const NodeProto& node) const;
  bool is_call(const NodeProto& node, std::int64_t version) const;
  std::int64_t version_of(const Scope& scope, std::string_view domain) const;
  bool is_tainted(Scope& scope, const NodeProto& node);

  const ModelProto& model_;
  Orders orders_;
  TensorReader tensors_;
  const ReadSettings& settings_;
  std::set<std::string, std::less<>> settable_;  // not met yet
  Loaded loaded_;
  OperatorNotes notes_{loaded_.operators, settings_.gate};
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, const FunctionProto*> functions_;
  std::map<std::string_view, std::int64_t> opsets_;
  std::map<std::tuple<std::string, std::string, std::int64_t, std::string>, std::size_t> unsupported_;
  std::set<std::string> warned_;
  std::int64_t body_budget_ = 1'000'000;  // nodes of bodies, each time that they are read
  std::size_t nodes_inlined_ = 0, calls_ = 0;
};

}  // namespace lamina::onnx
