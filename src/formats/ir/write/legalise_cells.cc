// Cells and sequences with activations, peepholes or coupled gates that OpenVINO's have not, in matrix
// products and functions of elements; a sequence is a loop over its steps.
#include <algorithm>

#include "formats/building.h"
#include "formats/ir/text.h"
#include "formats/ir/write/legalise.h"
#include "formats/ir/write/recurrent_parts.h"
#include "ops/activation.h"
#include "ops/control.h"
#include "ops/elementwise.h"
#include "ops/gathering.h"
#include "ops/generation.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/recurrent_math.h"
#include "ops/shaping.h"

namespace lamina::ir {
namespace {

/// The functions of a cell's gates.
class Gates {
 public:
  Gates(Legalisation& c, const Recurrent& op)
      : c_(c), op_(op), type_(c.element(c.in(0))), parameters_(activations_of(op)) {}

  /// A gate's function of its sum, which is bounded before.
  ValueId gate(std::size_t function, ValueId x, const std::string& name) {
    if (op_.clip > 0) {
      Clamp clip;
      clip.min = -op_.clip;
      clip.max = op_.clip;
      x = c_.add(clip, {x}, name + "_clipped");
    }
    return apply(function, x, name);
  }
  ValueId apply(std::size_t function, ValueId x, const std::string& name) {
    const std::string kind = lower(op_.activations.at(function));
    const double alpha = parameters_.at(function).alpha, beta = parameters_.at(function).beta;
    if (kind == "sigmoid") return c_.add(Sigmoid{}, {x}, name);
    if (kind == "tanh") return c_.add(Tanh{}, {x}, name);
    if (kind == "relu") return c_.add(Relu{}, {x}, name);
    if (kind == "softsign") return c_.add(SoftSign{}, {x}, name);
    if (kind == "softplus") return c_.add(SoftPlus{}, {x}, name);
    if (kind == "elu") return c_.add(Elu{alpha}, {x}, name);
    const ValueId a = c_.number(alpha, type_, name + "_alpha"), b = c_.number(beta, type_, name + "_beta");
    if (kind == "hardsigmoid") return c_.add(HardSigmoid{}, {x, a, b}, name);
    if (kind == "affine") return c_.add(Add{}, {c_.add(Multiply{}, {x, a}, name + "_scaled"), b}, name);
    if (kind == "leakyrelu") return c_.add(PRelu{}, {x, a}, name);
    if (kind == "scaledtanh") {
      const ValueId inner = c_.add(Tanh{}, {c_.add(Multiply{}, {x, b}, name + "_scaled")}, name + "_tanh");
      return c_.add(Multiply{}, {inner, a}, name);
    }
    if (kind == "thresholdedrelu")
      return c_.add(Select{},
                    {c_.add(Greater{}, {x, a}, name + "_above"), x, c_.number(0, type_, name + "_zero")},
                    name);
    c_.refuse("the activation {}", kind);
  }
  /// x * weights^T + bias; an invalid bias is none.
  ValueId product(ValueId x, ValueId weights, ValueId bias, const std::string& name) {
    const ValueId y = c_.add(MatMul{false, true}, {x, weights}, name);
    return bias.valid() ? c_.add(Add{}, {y, bias}, name + "_biased") : y;
  }
  std::vector<ValueId> split(ValueId value, std::int64_t parts, std::int64_t axis, const std::string& name) {
    return c_.add_many(Split{parts}, {value, c_.integer(axis, name + "_axis")}, static_cast<int>(parts),
                       name);
  }
  ValueId sum(ValueId a, ValueId b, const std::string& name) { return c_.add(Add{}, {a, b}, name); }
  ValueId times(ValueId a, ValueId b, const std::string& name) { return c_.add(Multiply{}, {a, b}, name); }
  ValueId one_less(ValueId a, const std::string& name) {
    return c_.add(Subtract{}, {c_.number(1, type_, name + "_one"), a}, name);
  }

 private:
  Legalisation& c_;
  const Recurrent& op_;
  ElementType type_;
  std::vector<GateFunction> parameters_;
};

}  // namespace

std::vector<ValueId> lstm_in_parts(Legalisation& c) {
  const auto& op = c.op<LSTMCell>();
  Gates g(c, op);
  const ValueId h = c.in(1), before = c.in(2);
  const ValueId sums = g.sum(g.product(c.in(0), c.in(3), c.in(5), "x_gates"),
                             g.product(h, c.in(4), ValueId(), "h_gates"), "sums");
  const auto parts = g.split(sums, 4, 1, "gates");  // f, i, c, o
  std::vector<ValueId> peepholes;                   // i, o, f
  if (c.has(6)) peepholes = g.split(c.in(6), 3, 0, "peepholes");
  const auto with = [&](ValueId gate, std::size_t which, ValueId state, const std::string& name) {
    return peepholes.empty() ? gate
                             : g.sum(gate, g.times(peepholes[which], state, name + "_peep"), name + "_sum");
  };
  const ValueId i = g.gate(0, with(parts[1], 0, before, "i"), "i");
  const ValueId f = op.input_forget ? g.one_less(i, "f") : g.gate(0, with(parts[0], 2, before, "f"), "f");
  const ValueId candidate = g.gate(1, parts[2], "candidate");
  const ValueId now = g.sum(g.times(f, before, "kept"), g.times(i, candidate, "new"), "cell");
  const ValueId o = g.gate(0, with(parts[3], 1, now, "o"), "o");
  return {g.times(o, g.apply(2, now, "activated"), "hidden"), now};
}

std::vector<ValueId> gru_in_parts(Legalisation& c) {
  const auto& op = c.op<GRUCell>();
  Gates g(c, op);
  const ValueId h = c.in(1);
  const auto x = g.split(g.product(c.in(0), c.in(2), ValueId(), "x_gates"), 3, 1, "of_x");
  const auto weights = g.split(c.in(3), 3, 0, "weights");
  std::vector<ValueId> bias(4);
  if (c.has(4)) {
    const auto given = g.split(c.in(4), op.linear_before_reset ? 4 : 3, 0, "bias");
    std::copy(given.begin(), given.end(), bias.begin());
  }
  const auto gate = [&](std::size_t i, const std::string& name) {
    return g.gate(0, g.sum(x[i], g.product(h, weights[i], bias[i], name + "_h"), name + "_sum"), name);
  };
  const ValueId z = gate(0, "z"), r = gate(1, "r");
  const ValueId inner = op.linear_before_reset
                            ? g.times(r, g.product(h, weights[2], bias[3], "h_h"), "reset")
                            : g.product(g.times(r, h, "reset"), weights[2], ValueId(), "h_h");
  ValueId sum = g.sum(x[2], inner, "candidate_sum");
  if (bias[2].valid()) sum = g.sum(sum, bias[2], "candidate_biased");
  const ValueId candidate = g.gate(1, sum, "candidate");
  const ValueId fresh = g.times(g.one_less(z, "not_z"), candidate, "new");
  return {g.sum(fresh, g.times(z, h, "kept"), "hidden")};
}

std::vector<ValueId> rnn_in_parts(Legalisation& c) {
  Gates g(c, c.op<RNNCell>());
  const ValueId x = g.product(c.in(0), c.in(2), c.in(4), "x_gate");
  return {g.gate(0, g.sum(x, g.product(c.in(1), c.in(3), ValueId(), "h_gate"), "sum"), "hidden")};
}

namespace {

/// One direction of a sequence, whose inputs are all there, as a loop over its steps.
class OneDirection {
 public:
  OneDirection(Legalisation& c, const SequenceInputs& in, const Op& cell, std::int64_t direction,
               bool reverse)
      : c_(c), in_(in), cell_(cell), direction_(direction), reverse_(reverse) {}

  /// Y [N,1,T,h], then the last states [N,1,h].
  std::vector<ValueId> run(ValueId goes_on) {
    const ValueId x = reverse_ ? reversed(in_.x, "x_reversed") : in_.x;
    std::vector<ValueId> inputs = {ValueId(), ValueId()};
    for (std::size_t i = 0; i < in_.states.size(); ++i)
      inputs.push_back(of_direction(in_.states[i], 1, fmt::format("state{}", i)));
    inputs.insert(inputs.end(), {x, goes_on});
    for (std::size_t i = 0; i < in_.parameters.size(); ++i)
      inputs.push_back(of_direction(in_.parameters[i], 0, fmt::format("parameter{}", i)));
    Loop loop;
    loop.carried = std::ssize(in_.states);
    loop.slice_axes = {1, 1};
    loop.concat_axes = {1};
    const int outputs = static_cast<int>(in_.states.size()) + 1;
    std::vector<Graph> bodies;
    bodies.push_back(body(inputs));
    auto made = c_.add_many(loop, inputs, outputs, name("steps"), std::move(bodies));
    ValueId y = made.back();
    if (reverse_) y = reversed(y, "y_reversed");
    std::vector<ValueId> out = {c_.add(Unsqueeze{}, {y, c_.ints({1}, name("y_axis"))}, name("y"))};
    for (std::size_t i = 0; i + 1 < made.size(); ++i)
      out.push_back(
          c_.add(Unsqueeze{}, {made[i], c_.ints({1}, name("axis"))}, name(fmt::format("last{}", i))));
    return out;
  }

 private:
  std::string name(const std::string& what) const { return fmt::format("direction{}_{}", direction_, what); }
  ValueId reversed(ValueId value, const std::string& what) {
    return c_.add(ReverseSequence{0, 1}, {value, in_.lengths}, name(what));
  }
  ValueId of_direction(ValueId value, std::int64_t axis, const std::string& what) {
    return c_.add(
        Gather{},
        {value, c_.integer(direction_, name(what + "_index")), c_.integer(axis, name(what + "_axis"))},
        name(what));
  }

  /// A step: states go on only where the sequence does.
  Graph body(const std::vector<ValueId>& outer) {
    Graph g;
    add_counters(g);
    const auto parameter = [&](std::size_t i, const std::string& what, bool slice) {
      TensorType type = c_.type(outer[i]);
      if (slice && type.shape.ranked()) type.shape[1] = Dim(1);
      return g.add_input(what, type);
    };
    const std::size_t states = in_.states.size();
    std::vector<ValueId> before, cell_inputs(1);
    for (std::size_t i = 0; i < states; ++i)
      before.push_back(parameter(2 + i, fmt::format("before{}", i), false));
    const ValueId x = parameter(2 + states, "x_step", true), on = parameter(3 + states, "goes_on_step", true);
    const ValueId axis = g.add_constant(Tensor::of(Dims{1}, Ints{1}), "time_axis");
    cell_inputs[0] = g.add(Squeeze{}, {x, axis}, "x");
    const ValueId goes_on = g.add(Squeeze{}, {on, axis}, "goes_on");
    cell_inputs.insert(cell_inputs.end(), before.begin(), before.end());
    for (std::size_t i = 0; i < in_.parameters.size(); ++i)
      cell_inputs.push_back(parameter(4 + states + i, fmt::format("parameter{}", i), false));
    const NodeId cell = g.add_node(cell_, cell_inputs, "cell", static_cast<int>(states));
    const auto now = g.node(cell).outputs;
    g.add_result("true", g.add_constant(Tensor::scalar(true), "always"));
    for (std::size_t i = 0; i < states; ++i)
      g.add_result(fmt::format("after{}", i),
                   g.add(Select{}, {goes_on, now[i], before[i]}, fmt::format("now{}", i)));
    const ElementType type = c_.element(in_.x);
    const ValueId zero = g.add_constant(from_doubles(type, {}, {0}), "zero");
    const ValueId y = g.add(Select{}, {goes_on, now[0], zero}, "shown");
    g.add_result("y", g.add(Unsqueeze{}, {y, axis}, "y_step"));
    return legalise(g, c_.version()).graph;
  }

  Legalisation& c_;
  const SequenceInputs& in_;
  const Op& cell_;
  std::int64_t direction_;
  bool reverse_;
};

}  // namespace

std::vector<ValueId> sequence_in_steps(Legalisation& c, const SequenceInputs& in,
                                       const std::vector<Op>& cells, Direction direction) {
  const ValueId time =
      c.add(Range{ElementType::i64},
            {c.integer(0, "first"), c.size_of(in.x, 1, "time"), c.integer(1, "step")}, "steps");
  const ValueId lengths =
      c.converted(c.reshaped(in.lengths, {-1, 1}, "lengths_down"), ElementType::i64, "lengths_i64");
  const ValueId until = c.add(Less{}, {time, lengths}, "until");
  const ValueId goes_on = c.add(Unsqueeze{}, {until, c.ints({2}, "last_axis")}, "goes_on");
  std::vector<std::vector<ValueId>> of_directions;
  for (std::size_t d = 0; d < cells.size(); ++d)
    of_directions.push_back(
        OneDirection(c, in, cells[d], static_cast<std::int64_t>(d), direction == Direction::reverse || d == 1)
            .run(goes_on));
  if (of_directions.size() == 1) return of_directions[0];
  std::vector<ValueId> out;
  for (std::size_t i = 0; i < of_directions[0].size(); ++i)
    out.push_back(c.add(Concat{1}, {of_directions[0][i], of_directions[1][i]}, fmt::format("both{}", i)));
  return out;
}

}  // namespace lamina::ir
