#include "quantise/counterparts.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/quantization.h"
#include "quantise/constants.h"
#include "rules/weights.h"

namespace lamina {
namespace {

/// Suffixes that quantisers add to a value's name, for its levels and for the floats made of these.
constexpr std::string_view kSuffixes[] = {"_QuantizeLinear_Output",
                                          "_quantized",
                                          "_DequantizeLinear_Output",
                                          "_dequantized",
                                          "_QuantizeLinear_Input",
                                          "/fq_output_0",
                                          "/fq_output_0.0"};

bool is_float_value(const Graph& g, ValueId v) { return is_float(g.type(v).element); }

/// Whether the value is an input, or the output of a node: not a constant.
bool is_computed(const Graph& g, ValueId v) {
  return v.valid() && (g.value(v).kind == ValueKind::output_of_node || g.value(v).kind == ValueKind::input);
}

bool is_produced_by(const Graph& g, ValueId v, const std::string& op) {
  const auto maker = g.producer(v);
  return maker.valid() && g.node(maker).op.name() == op;
}

/// Whether the operator is one that quantisers leave out if rounding to levels bounds numbers as it does.
bool is_bound(const Op& op) { return op.is<Relu>() || op.is<Clamp>(); }

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

std::string counted(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

class Finder {
 public:
  Finder(const Graph& quantised, const Graph& f32) : q_(quantised), f_(f32) {}

  Counterparts run() && {
    match_inputs();
    for (const auto id : f_.order())
      for (const auto v : f_.node(id).outputs) match_by_name(v);
    for (std::size_t r = 0; r < f_.results().size(); ++r)
      accept(f_.results()[r].value, q_.results()[r].value);
    match_layers();
    move_levels_behind_bounds();
    return std::move(out_);
  }

 private:
  void match_inputs() {
    const auto &a = q_.inputs(), &b = f_.inputs();
    if (a.size() != b.size() || q_.results().size() != f_.results().size())
      fail(ErrorCode::bad_input,
           "the quantised model has {} and {}, the f32 model {} and {}: wanted the same",
           counted(a.size(), "input"), counted(q_.results().size(), "output"), counted(b.size(), "input"),
           counted(f_.results().size(), "output"));
    for (std::size_t i = 0; i < a.size(); ++i) {
      require_fit("input", q_.value(a[i]).name, q_.type(a[i]), f_.type(b[i]));
      take(b[i], {a[i], roundings(a[i])});
    }
    for (std::size_t r = 0; r < q_.results().size(); ++r)
      require_fit("output", q_.results()[r].name, q_.type(q_.results()[r].value),
                  f_.type(f_.results()[r].value));
  }

  static void require_fit(std::string_view what, const std::string& name, const TensorType& a,
                          const TensorType& b) {
    const bool same = a.element == b.element || (is_float(a.element) && is_float(b.element));
    if (same && a.shape.fits(b.shape)) return;
    fail(ErrorCode::bad_input, "{} \"{}\" is {} in the quantised model and {} in the f32 model", what, name,
         to_string(a), to_string(b));
  }

  bool fits(ValueId q, ValueId f) const { return q_.type(q).shape.fits(f_.type(f).shape); }

  /// What a Quantize and a Dequantize, or a FakeQuantize, make of the value.
  std::vector<ValueId> roundings(ValueId computed) const {
    std::vector<ValueId> out;
    for (const auto& use : q_.value(computed).uses) {
      const Node& n = q_.node(use.node);
      if (use.input != 0) continue;
      if (n.op.is<FakeQuantize>()) out.push_back(n.outputs[0]);
      if (n.op.is<Quantize>()) add_floats_of(n.outputs[0], out);
    }
    return out;
  }

  void add_floats_of(ValueId levels, std::vector<ValueId>& out) const {
    for (const auto& use : q_.value(levels).uses)
      if (const Node& n = q_.node(use.node); n.op.is<Dequantize>() && use.input == 0)
        out.push_back(n.outputs[0]);
  }

  /// The counterpart to which a value of the quantised graph belongs: `found` is its value before rounding,
  /// its levels, or floats made of these.
  Counterpart around(ValueId found) const {
    Counterpart c;
    ValueId levels;
    const auto maker = q_.producer(found);
    if (!is_float_value(q_, found))
      levels = found;
    else if (maker.valid() && q_.node(maker).op.is<Dequantize>())
      levels = q_.node(maker).inputs[0];
    else if (maker.valid() && q_.node(maker).op.is<FakeQuantize>())
      c.computed = q_.node(maker).inputs[0], c.rounded.push_back(found);
    else
      c.computed = found;
    if (levels.valid()) {
      add_floats_of(levels, c.rounded);
      if (const auto q = q_.producer(levels); q.valid() && q_.node(q).op.is<Quantize>())
        c.computed = q_.node(q).inputs[0];
    } else if (c.rounded.empty()) {
      c.rounded = roundings(c.computed);
    }
    if (c.computed.valid() && (!is_computed(q_, c.computed) || !is_float_value(q_, c.computed)))
      c.computed = {};
    return c;
  }

  void match_by_name(ValueId v) {
    const auto& name = f_.value(v).name;
    accept(v, q_.find_value(name));
    for (const auto suffix : kSuffixes) accept(v, q_.find_value(name + std::string(suffix)));
  }

  /// Takes `found`, a value of the quantised graph that is `v` in floats or levels, unless it does not fit.
  void accept(ValueId v, ValueId found) {
    if (out_.of.contains(v) || !is_float_value(f_, v) || !is_computed(f_, v)) return;
    if (!is_computed(q_, found) || !fits(found, v)) return;
    auto c = around(found);
    if (const auto maker = f_.producer(v); c.computed.valid() && maker.valid() &&
                                           is_bound(f_.node(maker).op) &&
                                           !is_produced_by(q_, c.computed, f_.node(maker).op.name())) {
      // The bound was left out: what is rounded is what the node before it computes.
      const auto before = f_.node(maker).inputs[0];
      if (const auto first = f_.producer(before); first.valid() && fits(c.computed, before) &&
                                                  is_produced_by(q_, c.computed, f_.node(first).op.name()))
        take(before, {c.computed, {}});
      c.computed = {};
    }
    take(v, std::move(c));
  }

  void take(ValueId v, Counterpart c) {
    if (out_.of.contains(v)) return;
    if (c.computed.valid() && out_.quantised.contains(c.computed)) c.computed = {};
    std::erase_if(c.rounded, [&](ValueId r) { return out_.quantised.contains(r); });
    if (!c.computed.valid() && c.rounded.empty()) return;
    if (c.computed.valid()) out_.quantised.insert(c.computed);
    out_.quantised.insert(c.rounded.begin(), c.rounded.end());
    out_.of.emplace(v, std::move(c));
  }

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

  /// Finds layers whose values have other names.
  void match_layers() {
    std::vector<NodeId> ours, theirs;
    for (const auto id : f_.order())
      if (is_layer(f_, id) &&
          !is_covered(f_, f_.node(id).outputs[0], [&](ValueId v) { return out_.of.contains(v); }))
        ours.push_back(id);
    if (ours.empty()) return;
    for (const auto id : q_.order())
      if (is_layer(q_, id) &&
          !is_covered(q_, q_.node(id).outputs[0], [&](ValueId v) { return out_.quantised.contains(v); }))
        theirs.push_back(id);
    std::vector<NodeId> left;
    for (const auto id : ours) {
      const auto twin = most_alike(id, theirs);
      if (twin == theirs.end()) {
        left.push_back(id);
        continue;
      }
      match_layer(id, *twin);
      theirs.erase(twin);
    }
    match_in_order(left, theirs);
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
      for (std::size_t i = 0; i < layers.first.size(); ++i) match_layer(layers.first[i], layers.second[i]);
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
    const auto v = nearest_known(f_, ours.inputs[0], [&](ValueId x) { return out_.of.contains(x); });
    const auto w = nearest_known(q_, theirs.inputs[0], [&](ValueId x) { return out_.quantised.contains(x); });
    if (!v.valid() || !w.valid()) return false;
    const auto& c = out_.of.at(v);
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

  /// What a constant that is added behind the layer makes of its result, which may be rounded to levels in
  /// between; invalid if nothing is added.
  static ValueId with_constant_added(const Graph& g, ValueId v) {
    constexpr int kMostBetween = 3;
    for (int i = 0; i < kMostBetween; ++i) {
      if (g.readers(v) != 1 || g.value(v).uses.size() != 1) return {};
      const auto [reader, input] = g.value(v).uses[0];
      const Node& n = g.node(reader);
      if (n.op.is<Add>() && n.inputs.size() == 2 && constant_nodes(g, n.inputs[1 - input]))
        return n.outputs[0];
      const bool rounds = n.op.is<Quantize>() || n.op.is<Dequantize>() || n.op.is<FakeQuantize>();
      if (!rounds || input != 0) return {};
      v = n.outputs[0];
    }
    return {};
  }

  /// A bias may be an input of the layer in one graph and a sum behind it in the other: then only the results
  /// with it are the same.
  void match_layer(NodeId ours, NodeId theirs) {
    const Node &n = f_.node(ours), &other = q_.node(theirs);
    accept(n.inputs[0], other.inputs[0]);
    const auto v = n.outputs[0], w = other.outputs[0];
    const auto v_sum = with_constant_added(f_, v), w_sum = with_constant_added(q_, w);
    if (has_input(n, 2) == has_input(other, 2) && v_sum.valid() == w_sum.valid()) {
      match(v, w);
      if (v_sum.valid()) match(v_sum, w_sum);
    } else {
      match(v_sum.valid() ? v_sum : v, w_sum.valid() ? w_sum : w);
    }
  }

  void match(ValueId v, ValueId computed) {
    if (fits(computed, v)) take(v, {computed, roundings(computed)});
  }

  /// If the quantised model leaves out a bound, the levels before it become the levels of its result, since
  /// rounding to them bounds, too.
  void move_levels_behind_bounds() {
    std::vector<std::pair<ValueId, ValueId>> moves;
    for (const auto& [v, c] : out_.of) {
      if (!c.computed.valid() || c.rounded.empty() || f_.readers(v) != 1 || f_.value(v).uses.size() != 1)
        continue;
      const Node& next = f_.node(f_.value(v).uses[0].node);
      if (!is_bound(next.op) || out_.of.contains(next.outputs[0])) continue;
      auto readers = c.rounded;
      readers.push_back(c.computed);
      const bool has_it = std::any_of(readers.begin(), readers.end(), [&](ValueId x) {
        const auto& uses = q_.value(x).uses;
        return std::any_of(uses.begin(), uses.end(),
                           [&](const Use& use) { return q_.node(use.node).op.name() == next.op.name(); });
      });
      if (!has_it) moves.emplace_back(v, next.outputs[0]);
    }
    for (const auto& [from, to] : moves) {
      auto rounded = std::move(out_.of[from].rounded);
      out_.of[from].rounded.clear();
      out_.of[to] = {{}, std::move(rounded)};
    }
  }

  const Graph &q_, &f_;
  Counterparts out_;
};

}  // namespace

void Counterparts::forget(ValueId f32) {
  const auto it = of.find(f32);
  if (it == of.end()) return;
  quantised.erase(it->second.computed);
  for (const auto v : it->second.rounded) quantised.erase(v);
  of.erase(it);
}

bool has_levels(const Graph& g) {
  for (const auto id : g.order()) {
    const Node& n = g.node(id);
    if (n.op.has(Trait::levels) || n.op.is<Dequantize>())
      if (!n.inputs.empty() && is_computed(g, n.inputs[0]) && !constant_nodes(g, n.inputs[0])) return true;
  }
  return false;
}

bool is_layer(const Graph& g, NodeId id) {
  const Node& n = g.node(id);
  const bool is_recurrent = n.op.family() == OpFamily::recurrent;
  if (!is_recurrent && !n.op.has(Trait::products | Trait::weights)) return false;
  bool weights = false, computed = false;
  for (const auto v : n.inputs) {
    if (!v.valid()) continue;
    const bool constant = constant_nodes(g, v).has_value();
    weights |= constant && (!g.type(v).shape.ranked() || g.type(v).shape.rank() >= 2);
    computed |= !constant;
  }
  return weights && computed;
}

Counterparts find_counterparts(const Graph& quantised, const Graph& f32) {
  return Finder(quantised, f32).run();
}

}  // namespace lamina
