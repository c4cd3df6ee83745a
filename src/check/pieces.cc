#include "check/pieces.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/error.h"
#include "ops/control.h"

namespace lamina::checking {
namespace {

bool comes_from_node(const Graph& graph, ValueId v) {
  return v.valid() && graph.value(v).kind == ValueKind::output_of_node;
}

/// The interpreter may give another value at each run.
bool is_drawn(const Graph& graph, ValueId v) {
  const auto& op = graph.node(graph.producer(v)).op;
  return op.has(Trait::impure) && !op.is<Assign>();
}

/// Sets of nodes that are joined by values at which the graph is not cut.
class Sets {
 public:
  explicit Sets(std::size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0u); }
  std::uint32_t of(NodeId id) {
    auto n = id.index;
    while (parent_[n] != n) n = parent_[n] = parent_[parent_[n]];
    return n;
  }
  void join(NodeId a, NodeId b) { parent_[of(a)] = of(b); }

 private:
  std::vector<std::uint32_t> parent_;
};

/// Traces a graph from its outputs back to values at which it is cut.
class Tracer {
 public:
  Tracer(const Graph& graph, const std::vector<bool>& cut)
      : graph_(graph), cut_(cut), place_(graph.node_slots()), seen_(graph.node_slots(), 0) {
    std::size_t place = 0;
    for (const auto id : graph.order()) place_[id.index] = place++;
  }

  Section section(std::vector<ValueId> outputs) {
    ++turn_;
    Section s;
    s.outputs = std::move(outputs);
    std::set<ValueId> inputs;
    std::vector<NodeId> work;
    const auto read = [&](ValueId v, bool is_output) {
      if (!v.valid() || graph_.constant(v)) return;
      if (!comes_from_node(graph_, v) || (cut_[v.index] && !is_output)) {
        if (inputs.insert(v).second) s.inputs.push_back(v);
        return;
      }
      auto& seen = seen_[graph_.producer(v).index];
      if (seen != turn_) work.push_back(graph_.producer(v));
      seen = turn_;
    };
    for (const auto v : s.outputs) read(v, true);
    while (!work.empty()) {
      const auto id = work.back();
      work.pop_back();
      s.nodes.push_back(id);
      for (const auto v : graph_.node(id).inputs) read(v, false);
    }
    std::sort(s.nodes.begin(), s.nodes.end(),
              [&](NodeId a, NodeId b) { return place_[a.index] < place_[b.index]; });
    return s;
  }

 private:
  const Graph& graph_;
  const std::vector<bool>& cut_;
  std::vector<std::size_t> place_;
  std::vector<std::uint32_t> seen_;
  std::uint32_t turn_ = 0;
};

/// Finds equal values of two graphs.
class Cuts {
 public:
  Cuts(const Graph& original, const Graph& rewritten)
      : counterpart_(rewritten.value_slots()),
        cut_(rewritten.value_slots()),
        original_cut_(original.value_slots()) {
    for (std::uint32_t i = 0; i < rewritten.value_slots(); ++i) {
      const auto& value = rewritten.value({i});
      if (value.kind == ValueKind::none) continue;
      const auto counterpart = original.find_value(value.name);
      if (!counterpart.valid() || original.constant(counterpart)) {
        if (value.kind == ValueKind::input && rewritten.readers({i}) != 0)
          fail(ErrorCode::internal, "input \"{}\" of the rewritten graph is no value of the original",
               value.name);
        continue;
      }
      counterpart_[i] = counterpart;
      if (value.kind == ValueKind::constant) continue;  // reads as it is, is judged once
      cut_[i] = true;
      original_cut_[counterpart.index] = true;
    }
  }
  ValueId counterpart(ValueId v) const { return counterpart_[v.index]; }
  const std::vector<bool>& rewritten() const { return cut_; }
  const std::vector<bool>& original() const { return original_cut_; }

 private:
  std::vector<ValueId> counterpart_;
  std::vector<bool> cut_, original_cut_;
};

/// Values of the rewritten graph and what they must be in the original.
std::vector<std::pair<ValueId, ValueId>> claims(const Graph& original, const Graph& rewritten,
                                                const Cuts& cuts) {
  std::vector<std::pair<ValueId, ValueId>> out;
  for (std::uint32_t i = 0; i < rewritten.value_slots(); ++i) {
    const auto kind = rewritten.value({i}).kind;
    const bool made =
        kind == ValueKind::constant || (kind == ValueKind::output_of_node && !is_drawn(rewritten, {i}));
    if (made && cuts.counterpart({i}).valid()) out.emplace_back(ValueId{i}, cuts.counterpart({i}));
  }
  for (std::size_t r = 0; r < rewritten.results().size(); ++r) {
    const auto value = rewritten.results()[r].value, wanted = original.results().at(r).value;
    if (wanted != cuts.counterpart(value)) out.emplace_back(value, wanted);
  }
  return out;
}

}  // namespace

std::vector<Piece> pieces_of(const Graph& original, const Graph& rewritten) {
  const Cuts cuts(original, rewritten);
  Sets sets(rewritten.node_slots());
  for (const auto id : rewritten.order())
    for (const auto v : rewritten.node(id).inputs)
      if (comes_from_node(rewritten, v) && !cuts.rewritten()[v.index]) sets.join(id, rewritten.producer(v));

  std::map<std::uint32_t, Piece> joined;
  std::vector<Piece> pieces;  // of nodes, in the order of these; then what is an input or a constant
  Tracer here(rewritten, cuts.rewritten()), there(original, cuts.original());
  for (const auto& [value, wanted] : claims(original, rewritten, cuts)) {
    const auto maker = rewritten.producer(value);
    Piece& p = maker.valid() ? joined[sets.of(maker)] : pieces.emplace_back();
    p.rewritten.outputs.push_back(value);
    p.wanted.push_back(wanted);
  }
  for (auto& [set, p] : joined) pieces.push_back(std::move(p));
  for (auto& p : pieces) {
    p.rewritten = here.section(std::move(p.rewritten.outputs));
    p.original = there.section(p.wanted);
    for (const auto v : p.rewritten.inputs) p.given.push_back(cuts.counterpart(v));
  }
  return pieces;
}

Subgraph part_of(const Graph& graph, const Section& section, const std::vector<Tensor>& inputs) {
  Subgraph part(graph);
  for (std::size_t i = 0; i < section.inputs.size(); ++i)
    part.add_input(section.inputs[i], {inputs[i].element_type(), Shape::of(inputs[i].shape())});
  for (const auto id : section.nodes) part.add_node(id);
  for (const auto v : section.outputs) part.add_result(graph.value(v).name, v);
  return part;
}

}  // namespace lamina::checking
