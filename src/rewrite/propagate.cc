#include "rewrite/propagate.h"

#include <deque>
#include <unordered_map>

#include "graph/followed_sizes.h"
#include "graph/infer.h"

namespace lamina {
namespace {

/// Whether inference of a node may give another type now that input `input` is a constant of the type that it
/// had: only where it asks for the input's value. Of few inputs that is not worth to be known.
bool asks_for_value(const Graph& graph, const Use& use, WideNodes& wide) {
  constexpr std::size_t kWide = 16;
  const Node& n = graph.node(use.node);
  if (n.inputs.size() < kWide) return true;
  const auto [it, fresh] = wide.try_emplace(use.node.index);
  auto& asked = it->second;
  if (fresh || asked.size() != n.inputs.size()) {
    InferContext context(graph, n);
    n.op->infer(context);
    asked.resize(n.inputs.size());
    for (std::size_t i = 0; i < asked.size(); ++i) asked[i] = context.lacks(i);
  }
  return asked[use.input];
}

}  // namespace

bool may_hold_sizes(const TensorType& type) {
  return is_integer(type.element) && (!type.shape.ranked() || type.shape.rank() < 2);
}

void propagate_types(Graph& graph, ValueId from, bool same_type, WideNodes& wide) {
  struct Changed {
    ValueId value;
    int behind;  // so many nodes behind one that has another type
  };
  std::deque<Changed> changed{{from, 0}};
  std::unordered_map<std::uint32_t, int> sizes;  // that were followed, and how far behind
  while (!changed.empty()) {
    const auto [v, behind] = changed.front();
    changed.pop_front();
    const auto follow = [&](ValueId o, bool retyped) {
      if (retyped) return changed.push_back({o, 0});
      const auto distance = behind + 1;
      if (distance > kFollowedSizes || !may_hold_sizes(graph.type(o))) return;
      const auto [it, fresh] = sizes.try_emplace(o.index, distance);
      if (!fresh && it->second <= distance) return;
      it->second = distance;
      changed.push_back({o, distance});
    };
    const auto uses = graph.value(v).uses;
    for (const auto& use : uses) {
      bool retyped = false;
      if (v != from || !same_type || asks_for_value(graph, use, wide)) {
        retyped = graph.infer_node(use.node);
        wide.erase(use.node.index);
      }
      for (auto o : graph.node(use.node).outputs) follow(o, retyped);
    }
  }
}

}  // namespace lamina
