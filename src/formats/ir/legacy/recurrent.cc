// Recurrent cells and sequences. Weights are one matrix [gates, inputs and states], with gates in lamina's
// order.

#include "ops/recurrent.h"
#include "formats/ir/legacy/lowering.h"
#include "formats/ir/text.h"
#include "ops/movement.h"
#include "ops/shaping.h"

namespace lamina::ir::legacy {
namespace {

/// A family of recurrent layers.
struct Kind {
  const char* cell;
  const char* sequence;
  std::int64_t gates;
  std::size_t states;
};
constexpr Kind kLstm{"LSTMCell", "LSTMSequence", 4, 2}, kGru{"GRUCell", "GRUSequence", 3, 1},
    kRnn{"RNNCell", "RNNSequence", 1, 1};

struct Weights {
  ValueId of_inputs, of_states, biases;
};

/// Sizes of the layer: input 0 is [..., inputs].
struct Sizes {
  std::int64_t hidden = 0, inputs = 0, gates = 0, biases = 0;
};

Sizes sizes_of(Lowering& c, const Kind& kind) {
  Sizes n;
  n.hidden = c.integer("hidden_size");
  c.require(n.hidden >= 1 && n.hidden <= 1 << 24, "hidden_size is {}, wanted 1 to 2^24", n.hidden);
  const Shape& x = c.shape(0);
  c.require(x.ranked() && x.rank() >= 1 && x[x.rank() - 1].known(),
            "input 0 has the shape {}, wanted known sizes", to_string(x));
  n.inputs = x[x.rank() - 1].size();
  n.gates = kind.gates * n.hidden;
  n.biases = c.boolean("linear_before_reset", false) && kind.gates == 3 ? 4 * n.hidden : n.gates;
  return n;
}

Weights weights(Lowering& c, const Sizes& n) {
  const ValueId all = c.blob("weights", {n.gates, n.inputs + n.hidden});
  const ValueId axis = c.constant(Tensor::scalar(std::int64_t{1}), "axis");
  const ValueId lengths = c.constant(Ints{n.inputs, n.hidden}, "lengths");
  const NodeId node =
      c.graph().add_node(VariadicSplit{}, {all, axis, lengths}, c.layer().name + "/weights_split", 2);
  Weights out{c.graph().node(node).outputs[0], c.graph().node(node).outputs[1], {}};
  if (c.has_blob("biases")) out.biases = c.blob("biases", {n.biases});
  return out;
}

/// The operator; parameters of activations have an older name, too.
Op operator_of(Lowering& c, const char* name, const Sizes& n, std::vector<NamedAttribute> attributes) {
  attributes.push_back({"hidden_size", n.hidden});
  attributes.push_back({"clip", c.number("clip", 0)});
  if (c.has("activations")) {
    const std::string given = c.text("activations");
    Strings functions;
    for (const auto word : split_list(given)) functions.push_back(lower(word));
    attributes.push_back({"activations", functions});
  }
  for (const auto& [old, current] :
       {std::pair("activation_alpha", "activations_alpha"), std::pair("activation_beta", "activations_beta")})
    if (const char* given = c.has(current) ? current : old; c.has(given))
      attributes.push_back({current, c.numbers(given)});
  if (n.biases != n.gates) attributes.push_back({"linear_before_reset", true});
  return c.plain_op(name, attributes);
}

template <const Kind& kind>
void cell(Lowering& c) {
  c.want_inputs(1 + kind.states, 1 + kind.states);
  const Sizes n = sizes_of(c, kind);
  const Weights w = weights(c, n);
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i <= kind.states; ++i) inputs.push_back(c.real(i));
  inputs.insert(inputs.end(), {w.of_inputs, w.of_states});
  if (w.biases.valid()) inputs.push_back(w.biases);
  c.finish(operator_of(c, kind.cell, n, {}), inputs);
}

ValueId time_and_batch_swapped(Lowering& c, ValueId value, const std::string& suffix) {
  return c.add(Transpose{}, {value, c.constant(Ints{1, 0, 2}, suffix + "_order")}, suffix);
}

/// X is [N, T, inputs], or [T, N, inputs] with axis 0; so is Y. States are [N, hidden].
template <const Kind& kind>
void sequence(Lowering& c) {
  c.want_inputs(1, 2 + kind.states);
  c.require(c.rank(0) == 3, "input 0 has the shape {}, wanted three axes", to_string(c.shape(0)));
  const std::string direction = c.word("direction", "forward");
  if (direction == "bidirectional") throw NotSupported{"both directions in one layer"};
  c.require(direction == "forward" || direction == "backward", "direction=\"{}\", wanted Forward or Backward",
            direction.substr(0, 80));
  const auto axis = c.integer("axis", 1);
  c.require(axis == 0 || axis == 1, "axis is {}, wanted 0 or 1", axis);
  const Sizes n = sizes_of(c, kind);
  const Weights w = weights(c, n);
  std::vector<ValueId> inputs = {axis == 1 ? c.real(0) : time_and_batch_swapped(c, c.real(0), "by_batch")};
  for (std::size_t i = 1; i <= kind.states; ++i)
    inputs.push_back(c.inputs() > i ? c.reshaped(c.real(i), {0, 1, n.hidden}, fmt::format("state_{}", i))
                                    : ValueId());
  inputs.push_back(c.inputs() > 1 + kind.states ? c.integral(1 + kind.states) : ValueId());
  inputs.push_back(c.reshaped(w.of_inputs, {1, n.gates, n.inputs}, "W"));
  inputs.push_back(c.reshaped(w.of_states, {1, n.gates, n.hidden}, "R"));
  if (w.biases.valid()) inputs.push_back(c.reshaped(w.biases, {1, n.biases}, "B"));
  const Op op = operator_of(c, kind.sequence, n,
                            {{"direction", std::string(direction == "forward" ? "forward" : "reverse")}});
  const std::size_t outputs = 1 + kind.states;
  c.require(c.layer().outputs.size() <= outputs, "has {} outputs, wanted at most {}",
            c.layer().outputs.size(), outputs);
  const NodeId node = c.graph().add_node(op, inputs, c.layer().name, static_cast<int>(outputs));
  const std::vector<ValueId> made = c.graph().node(node).outputs;
  ValueId y = c.add(Squeeze{}, {made[0], c.constant(Ints{1}, "directions")}, "Y");
  if (axis == 0) y = time_and_batch_swapped(c, y, "by_time");
  c.set_output(0, y);
  for (std::size_t i = 1; i < outputs; ++i)
    c.set_output(i,
                 c.add(Squeeze{}, {made[i], c.constant(Ints{1}, "directions")}, fmt::format("state_{}", i)));
}

}  // namespace

void register_recurrent(LoweringTable& t) {
  t.add("LSTMCell", cell<kLstm>);
  t.add("GRUCell", cell<kGru>);
  t.add("RNNCell", cell<kRnn>);
  t.add("LSTMSequence", sequence<kLstm>);
  t.add("GRUSequence", sequence<kGru>);
  t.add("RNNSequence", sequence<kRnn>);
}

}  // namespace lamina::ir::legacy
