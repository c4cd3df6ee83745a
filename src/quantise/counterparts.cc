#include "quantise/counterparts.h"

#include <algorithm>

#include "base/error.h"
#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/quantization.h"
#include "quantise/constants.h"
#include "quantise/layer_queries.h"
#include "quantise/match_layers.h"
#include "rules/support.h"

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

bool is_produced_by(const Graph& g, ValueId v, const std::string& op) {
  const auto maker = g.producer(v);
  return maker.valid() && g.node(maker).op.name() == op;
}

/// Whether the operator is one that quantisers leave out if rounding to levels bounds numbers as it does.
bool is_bound(const Op& op) { return op.is<Relu>() || op.is<Clamp>(); }

std::string counted(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

class CounterpartFinder {
 public:
  CounterpartFinder(const Graph& quantised, const Graph& f32) : q_(quantised), f_(f32) {}

  Counterparts run() && {
    match_inputs();
    for (const auto id : f_.order())
      for (const auto v : f_.node(id).outputs) match_by_name(v);
    for (std::size_t r = 0; r < f_.results().size(); ++r)
      accept(f_.results()[r].value, q_.results()[r].value);
    match_layers(q_, f_, out_, [this](NodeId f32, NodeId quantised) { match_layer(f32, quantised); });
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

Counterparts find_counterparts(const Graph& quantised, const Graph& f32) {
  return CounterpartFinder(quantised, f32).run();
}

}  // namespace lamina
