#include "quantise/match_layers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "quantise/constants.h"
#include "quantise/layer_queries.h"

namespace lamina {
namespace {

/// How alike two lists of weights are, at most 1: the mean over output channels of the cosine of the angle
/// between the two, so that the scale of a channel does not count.
double likeness(const std::vector<double>& a, const std::vector<double>& b, std::size_t channels) {
  if (a.size() != b.size() || a.empty()) return 0;
  const auto rows = channels != 0 && a.size() % channels == 0 ? channels : 1;
  const auto length = a.size() / rows;
  double sum = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    double ab = 0, aa = 0, bb = 0;
    for (std::size_t i = r * length; i < (r + 1) * length; ++i)
      ab += a[i] * b[i], aa += a[i] * a[i], bb += b[i] * b[i];
    sum += aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : aa == bb ? 1 : 0;
  }
  return sum / static_cast<double>(rows);
}

class LayerMatcher {
 public:
  LayerMatcher(const Graph& quantised, const Graph& f32, const Counterparts& known,
               const std::function<void(NodeId, NodeId)>& take)
      : q_(quantised), f_(f32), known_(known), take_(take) {}

  void run() {
    std::vector<NodeId> ours, theirs;
    for (const auto id : f_.order())
      if (is_layer(f_, id) &&
          !is_covered(f_, f_.node(id).outputs[0], [&](ValueId v) { return known_.of.contains(v); }))
        ours.push_back(id);
    if (ours.empty()) return;
    for (const auto id : q_.order())
      if (is_layer(q_, id) &&
          !is_covered(q_, q_.node(id).outputs[0], [&](ValueId v) { return known_.quantised.contains(v); }))
        theirs.push_back(id);
    std::vector<NodeId> left;
    for (const auto id : ours) {
      const auto match = most_alike(id, theirs);
      if (match == theirs.end()) {
        left.push_back(id);
        continue;
      }
      take_(id, *match);
      theirs.erase(match);
    }
    match_in_order(left, theirs);
  }

 private:
  /// Whether the value, or one that follows it alone, has a counterpart.
  template <class Known>
  static bool is_covered(const Graph& g, ValueId v, const Known& known) {
    constexpr int kMostBetween = 4;
    for (int i = 0; i < kMostBetween; ++i) {
      if (known(v)) return true;
      if (g.readers(v) != 1 || g.value(v).uses.size() != 1) return false;
      const Node& next = g.node(g.value(v).uses[0].node);
      if (next.op.has(Trait::products | Trait::weights)) return false;
      v = next.outputs[0];
    }
    return false;
  }

  /// Pairs layers whose weights are too coarse to be alike: if both graphs have the same number of a kind
  /// left, these are the same layers, in order.
  void match_in_order(const std::vector<NodeId>& ours, const std::vector<NodeId>& theirs) {
    std::map<std::string, std::pair<std::vector<NodeId>, std::vector<NodeId>>> kinds;
    const auto kind = [](const Graph& g, NodeId id) {
      const Node& n = g.node(id);
      return n.op.name() + (n.inputs.size() > 1 ? to_string(g.type(n.inputs[1]).shape) : "");
    };
    for (const auto id : ours) kinds[kind(f_, id)].first.push_back(id);
    for (const auto id : theirs) kinds[kind(q_, id)].second.push_back(id);
    for (const auto& [name, layers] : kinds) {
      if (layers.first.size() != layers.second.size()) continue;
      for (std::size_t i = 0; i < layers.first.size(); ++i) take_(layers.first[i], layers.second[i]);
    }
  }

  /// The value or the nearest one in front of it, back along what is computed as far as the next layer, that
  /// `known` says is known.
  template <class Known>
  static ValueId nearest_known(const Graph& g, ValueId v, const Known& known) {
    constexpr int kMostBetween = 16;
    for (int i = 0; i < kMostBetween && v.valid(); ++i) {
      if (known(v)) return v;
      const auto maker = g.producer(v);
      if (!maker.valid() || g.node(maker).op.has(Trait::products | Trait::weights)) return {};
      v = computed_input(g, g.node(maker));
    }
    return {};
  }

  /// Both read values that are counterparts, or what follows such values.
  bool reads_same(const Node& ours, const Node& theirs) const {
    const auto v = nearest_known(f_, ours.inputs[0], [&](ValueId x) { return known_.of.contains(x); });
    const auto w =
        nearest_known(q_, theirs.inputs[0], [&](ValueId x) { return known_.quantised.contains(x); });
    if (!v.valid() || !w.valid()) return false;
    const auto& c = known_.of.at(v);
    return c.computed == w || std::find(c.rounded.begin(), c.rounded.end(), w) != c.rounded.end();
  }

  std::vector<NodeId>::iterator most_alike(NodeId id, std::vector<NodeId>& among) const {
    constexpr double kAlike = 0.7;
    const Node& n = f_.node(id);
    if (n.inputs.size() < 2) return among.end();
    std::optional<std::vector<double>> own;
    auto best = among.end();
    double most = kAlike;
    for (auto it = among.begin(); it != among.end(); ++it) {
      const Node& other = q_.node(*it);
      if (other.op.name() != n.op.name() || other.inputs.size() < 2) continue;
      const auto& type = f_.type(n.inputs[1]);
      if (!type.shape.known() || q_.type(other.inputs[1]).shape != type.shape) continue;
      if (!own) own = constant_numbers(f_, n.inputs[1]);
      const auto numbers = constant_numbers(q_, other.inputs[1]);
      if (!own || !numbers) continue;
      const auto& sizes = type.shape.sizes();
      const double alike = likeness(*own, *numbers, sizes.empty() ? 1 : static_cast<std::size_t>(sizes[0]));
      // Layers that share their weights differ in what they read.
      constexpr double kSame = 1e-3;
      const bool tells_apart = best != among.end() && !reads_same(n, q_.node(*best)) && reads_same(n, other);
      if (alike > most + kSame || (alike > most - kSame && tells_apart) || best == among.end()) {
        if (alike <= kAlike) continue;
        best = it, most = std::max(most, alike);
      }
    }
    return best;
  }

  const Graph &q_, &f_;
  const Counterparts& known_;
  const std::function<void(NodeId, NodeId)>& take_;
};

}  // namespace

void match_layers(const Graph& quantised, const Graph& f32, const Counterparts& known,
                  const std::function<void(NodeId, NodeId)>& take) {
  LayerMatcher(quantised, f32, known, take).run();
}

}  // namespace lamina
