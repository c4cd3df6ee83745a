#pragma once
/// Walks a graph of oneDNN Graph and builds ours: edges by ids, inputs, operations, names, outputs.
/// Converters give operations their meaning.
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/loaded.h"
#include "formats/onednn_graph/call.h"
#include "formats/onednn_graph/roundings.h"

namespace lamina::onednn_graph {

class Importer {
 public:
  Importer(const GraphDef& def, const ReadSettings& settings)
      : def_(def), settings_(settings), unrounded_(unrounded_tensors(def)) {}
  Loaded run();

 private:
  static constexpr std::size_t kNone = SIZE_MAX;

  /// Numbers that rounding to a half type leaves alone.
  struct Halves {
    bool bf16 = false, f16 = false;
    bool of(ElementType type) const { return type == ElementType::bf16 ? bf16 : f16; }
  };

  /// A logical tensor, at all of its operations.
  struct Edge {
    const TensorDef* def = nullptr;  ///< where it is made, else where it is read first
    std::size_t producer = kNone;    ///< operation
    bool read = false;               ///< by an operation other than End
    bool ends = false;               ///< by End
    GroupedWeights weights = {};     ///< when it is those of a transposed convolution
    ValueId value;
    Halves fits = {};  ///< what all numbers of the tensor are
    ValueId half;      ///< of f16: before it became f32
  };

  void note_edges();
  void note_output(std::size_t op, const TensorDef& t);
  void note_input(const OpDef& op, const TensorDef& t);
  void note_groups(const OpDef& op);
  std::vector<std::size_t> order() const;
  void add_inputs();
  void add_input(Edge& edge);
  void import(const OpDef& op);
  Values convert(const OpDef& op, const Values& inputs);
  Values make_opaque(const OpDef& op, const Values& inputs);
  void list_unsupported(const OpDef& op, const std::string& reason);
  void finish(const OpDef& op, Values values, std::size_t first_node, std::size_t first_value);
  static Halves fit_of_dequantized(const OpDef& op);
  Halves fit_of(const OpDef& op) const;
  void round(Edge& edge);
  void check_said(ValueId v, const TensorDef& said) const;
  void add_results();
  void add_result(const Edge& edge);
  /// The edges that a list of ports names, then those of `all`, each once.
  template <class F>
  void for_ports(std::string_view key, const std::vector<std::uint64_t>& ports,
                 const std::vector<std::uint64_t>& all, bool inputs, F&& f);
  void warn(std::string text);

  const GraphDef& def_;
  const ReadSettings& settings_;
  const std::unordered_set<std::uint64_t> unrounded_;
  Loaded loaded_;
  OperatorNotes notes_{loaded_.operators, settings_.gate};
  int folding_budget_ = 200'000;  // nodes that may be evaluated while reading
  std::unordered_map<std::uint64_t, Edge> edges_;
  std::vector<std::uint64_t> input_ids_, made_ids_;  ///< in the order of the file
  std::map<std::pair<std::string, std::string>, std::size_t> unsupported_;
};

}  // namespace lamina::onednn_graph
