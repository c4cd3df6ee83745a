#include "quantise/places.h"

#include <algorithm>
#include <numeric>

#include "ops/elementwise.h"
#include "ops/pooling.h"
#include "rules/chosen_elements.h"

namespace lamina {
namespace {

bool is_f32(const Graph& g, ValueId v) { return v.valid() && g.type(v).element == ElementType::f32; }

/// The inputs of a node whose elements it passes on unchanged; none if it computes.
std::vector<std::size_t> carried_inputs(const Graph& g, NodeId id) {
  const auto& node = g.node(id);
  if (!keeps_levels(g, node)) return {};
  for (const auto v : node.outputs)
    if (!is_f32(g, v)) return {};
  std::vector<std::size_t> out(data_inputs(node));
  std::iota(out.begin(), out.end(), std::size_t{0});
  for (const auto i : out)
    if (!is_f32(g, node.inputs[i]) || g.constant(node.inputs[i])) return {};
  return out;
}

class Placing {
 public:
  Placing(const Graph& g, const std::vector<Layer>& layers, const std::set<NodeId>& apart,
          const std::vector<std::string>& exclude_types)
      : g_(g), order_(g.order()), apart_(apart), exclude_types_(exclude_types) {
    for (std::size_t i = 0; i < order_.size(); ++i) place_[order_[i]] = i;
    for (const auto& layer : layers)
      if (layer.reason.empty()) layers_.insert(layer.node);
    for (const auto id : layers_) uses_.insert({id, 0});
  }

  QuantisedPlaces run() {
    add_poolings();
    add_sums();
    const auto deciding = uses_;
    carry();
    return placement(deciding);
  }

 private:
  bool stays_f32(NodeId id) const {
    const auto& types = exclude_types_;
    return apart_.contains(id) || std::find(types.begin(), types.end(), g_.node(id).op.name()) != types.end();
  }

  /// The layer whose sums become the value, behind activations and constants that are added; or nothing.
  NodeId layer_behind(ValueId v) const {
    for (std::size_t steps = 0; steps < 8; ++steps) {
      const auto id = g_.producer(v);
      if (!id.valid() || layers_.contains(id)) return id.valid() ? id : NodeId{};
      const auto& node = g_.node(id);
      if (!node.op.has(Trait::elementwise)) return {};
      ValueId next;
      for (const auto input : node.inputs)
        if (input.valid() && !g_.constant(input)) {
          if (next.valid() && !(next == input)) return {};
          next = input;
        }
      if (!next.valid()) return {};
      v = next;
    }
    return {};
  }

  void add_poolings() {
    for (const auto id : order_) {
      const auto& node = g_.node(id);
      if (node.op.is<AvgPool>() && !stays_f32(id) && is_f32(g_, node.inputs[0]) &&
          layer_behind(node.inputs[0]).valid())
        uses_.insert({id, 0});
    }
  }

  bool is_read_as_levels(ValueId v) const {
    const auto& uses = g_.value(v).uses;
    return std::any_of(uses.begin(), uses.end(), [&](const Use& u) {
      return uses_.contains({u.node, u.input});
    });
  }

  /// One operand may be the sums of a layer, which are added while they are at hand; the other one lies in
  /// memory, better in 8 bits than in 32.
  void add_sums() {
    for (const auto id : order_) {
      const auto& node = g_.node(id);
      if (!node.op.is<Add>() || stays_f32(id) || !is_f32(g_, node.outputs[0])) continue;
      const auto a = node.inputs[0], b = node.inputs[1];
      if (a == b || g_.constant(a) || g_.constant(b) || !(g_.type(a).shape == g_.type(b).shape)) continue;
      const auto stored = stored_operand(a, b);
      if (stored && (is_read_as_levels(node.inputs[*stored]) || layer_behind(node.inputs[*stored]).valid()))
        uses_.insert({id, *stored});
    }
  }

  bool is_sums_at_hand(ValueId v) const {
    const auto id = g_.producer(v);
    return id.valid() && layers_.contains(id) && g_.readers(v) == 1;
  }

  /// The one that is there first when the other one's layer can add it.
  std::optional<std::size_t> stored_operand(ValueId a, ValueId b) const {
    const bool can_a = is_sums_at_hand(a), can_b = is_sums_at_hand(b);
    if (!can_a && !can_b) return std::nullopt;
    if (can_a != can_b) return can_a ? 1 : 0;
    return place_.at(g_.producer(a)) < place_.at(g_.producer(b)) ? 0 : 1;
  }

  /// Nobody reads the value as f32.
  bool all_levels(ValueId v) const {
    const auto& uses = g_.value(v).uses;
    return !uses.empty() && !g_.is_result(v) && std::all_of(uses.begin(), uses.end(), [&](const Use& u) {
      return uses_.contains({u.node, u.input});
    });
  }

  bool may_carry(NodeId id) const {
    if (stays_f32(id)) return false;
    const auto& outputs = g_.node(id).outputs;
    return std::all_of(outputs.begin(), outputs.end(), [&](ValueId v) { return all_levels(v); });
  }

  /// Optimistic first: all such nodes carry levels; then those do not that somebody reads in f32, until
  /// nothing changes. Long chains of changes end without any.
  void carry() {
    std::map<NodeId, std::vector<std::size_t>> carriers;
    for (const auto id : order_)
      if (auto inputs = carried_inputs(g_, id); !inputs.empty()) carriers.emplace(id, std::move(inputs));
    for (const auto& [id, inputs] : carriers)
      for (const auto i : inputs) uses_.insert({id, i});
    const auto drop = [&](NodeId id) {
      for (const auto i : carriers.at(id)) uses_.erase({id, i});
      carriers.erase(id);
    };
    constexpr int kTurns = 64;
    for (int turn = 0;; ++turn) {
      bool changed = false;
      for (auto it = order_.rbegin(); it != order_.rend(); ++it) {
        const auto found = carriers.find(*it);
        if (found == carriers.end()) continue;
        const auto& inputs = found->second;
        const bool can = turn < kTurns && may_carry(*it) &&
                         std::all_of(inputs.begin(), inputs.end(),
                                     [&](auto i) { return all_levels(g_.node(*it).inputs[i]); });
        if (can) continue;
        drop(*it);
        changed = true;
      }
      if (!changed) break;
    }
    for (const auto& [id, inputs] : carriers) carriers_.emplace(id, inputs);
  }

  QuantisedPlaces placement(const std::set<QuantisedUse>& deciding) {
    QuantisedPlaces out;
    std::map<ValueId, std::size_t> index;
    for (const auto& use : uses_) {
      const auto v = g_.node(use.node).inputs[use.input];
      index.emplace(v, index.size());
      if (deciding.contains(use)) out.deciding.insert(v);
    }
    std::vector<std::size_t> parent(index.size());
    std::iota(parent.begin(), parent.end(), std::size_t{0});
    const auto root = [&](std::size_t i) {
      while (parent[i] != i) i = parent[i] = parent[parent[i]];
      return i;
    };
    for (const auto& [id, inputs] : carriers_)
      for (const auto v : g_.node(id).outputs) {
        out.carried.insert(v);
        for (const auto i : inputs) parent[root(index.at(g_.node(id).inputs[i]))] = root(index.at(v));
      }
    std::map<std::size_t, std::size_t> numbers;
    for (const auto& [v, i] : index) out.groups[v] = numbers.emplace(root(i), numbers.size()).first->second;
    out.group_count = numbers.size();
    out.uses = uses_;
    return out;
  }

  const Graph& g_;
  const std::vector<NodeId> order_;
  std::map<NodeId, std::size_t> place_;
  const std::set<NodeId>& apart_;
  const std::vector<std::string>& exclude_types_;
  std::set<NodeId> layers_;
  std::set<QuantisedUse> uses_;
  std::map<NodeId, std::vector<std::size_t>> carriers_;
};

}  // namespace

QuantisedPlaces place(const Graph& graph, const std::vector<Layer>& layers, const std::set<NodeId>& apart,
                      const std::vector<std::string>& exclude_types) {
  return Placing(graph, layers, apart, exclude_types).run();
}

}  // namespace lamina
