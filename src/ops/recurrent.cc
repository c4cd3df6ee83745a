#include "ops/recurrent.h"

#include "graph/op_model.h"
#include "ops/operators.h"
#include "ops/recurrent_math.h"
#include "ops/require.h"

namespace lamina {
namespace {

/// Positions of an operator's inputs; -1: it has no such input.
struct Inputs {
  int lengths, w, r, b, p;
  int states;  ///< inputs 1 .. states
};

void check_attributes(const InferContext& c, const Recurrent& op, std::size_t functions,
                      bool both_directions) {
  const auto n = op.activations.size();
  c.require(n == functions || (both_directions && n == 2 * functions), "{} activations, wanted {}", n,
            functions);
  for (const auto& a : op.activations)
    c.require(known_activation(a), "activation \"{}\" is not known, wanted one of {}", a, activation_names());
  c.require(op.hidden_size >= 0 && op.hidden_size <= INT32_MAX, "hidden_size is {}, wanted 1 or more",
            op.hidden_size);
  c.require(op.clip >= 0, "clip is {}, wanted 0 or more", op.clip);
}

void check_outputs(const InferContext& c, std::size_t most) {
  c.require(c.outputs() <= most, "{} outputs, wanted {}", c.outputs(), most);
}

/// The hidden size from the attribute, else from the recurrence weights.
Dim hidden_of(const InferContext& c, const Recurrent& op, const Shape& r) {
  const Dim last = r.ranked() && r.rank() > 0 ? r[r.rank() - 1] : Dim();
  if (op.hidden_size == 0) return last;
  require_dim(c, last, op.hidden_size, "hidden size of the recurrence weights");
  return op.hidden_size;
}

/// Checks everything but X and gives the hidden size. `front`: [] for cells, [directions] for sequences;
/// `batch`: the dims before the hidden size in states.
Dim check_inputs(const InferContext& c, const Recurrent& op, const Inputs& in, std::int64_t gates,
                 std::int64_t biases, const std::vector<Dim>& front, const std::vector<Dim>& batch,
                 const Dim& input_size) {
  const auto index = [](int i) { return static_cast<std::size_t>(i); };
  require_float(c, 0, "X");
  for (auto i : {in.w, in.r}) c.require(c.has(index(i)), "input {} (weights) is missing", i);
  const Dim hidden = hidden_of(c, op, c.shape(index(in.r)));
  const auto check = [&](int i, std::vector<Dim> dims, std::vector<Dim> more, std::string_view name) {
    if (i < 0 || !c.has(index(i))) return;
    dims.insert(dims.end(), more.begin(), more.end());
    require_same_element(c, 0, index(i), name);
    require_shape(c, index(i), Shape(std::move(dims)), name);
  };
  for (int i = 1; i <= in.states; ++i) check(i, batch, {hidden}, i == 1 ? "hidden state" : "cell state");
  check(in.w, front, {hidden * Dim(gates), input_size}, "W");
  check(in.r, front, {hidden * Dim(gates), hidden}, "R");
  check(in.b, front, {hidden * Dim(biases)}, "B");
  check(in.p, front, {hidden * Dim(3)}, "P");
  return hidden;
}

/// Outputs are H and, for LSTM, C.
void infer_cell(InferContext& c, const Recurrent& op, const Inputs& in, std::int64_t gates,
                std::int64_t biases, std::size_t functions) {
  check_attributes(c, op, functions, false);
  check_outputs(c, static_cast<std::size_t>(in.states));
  require_rank(c, 0, 2, 2, "X");
  const auto& x = c.shape(0);
  Dim batch = x.ranked() ? x[0] : Dim();
  if (!batch.known() && c.shape(1).ranked() && c.shape(1).rank() == 2) batch = c.shape(1)[0];
  const Dim hidden = check_inputs(c, op, in, gates, biases, {}, {batch}, x.ranked() ? x[1] : Dim());
  for (std::size_t i = 0; i < c.outputs(); ++i) c.set(i, c.element(0), Shape{batch, hidden});
}

/// Outputs are Y, H and, for LSTM, C.
void infer_sequence(InferContext& c, const Recurrent& op, Direction direction, const Inputs& in,
                    std::int64_t gates, std::int64_t biases, std::size_t functions) {
  check_attributes(c, op, functions, direction == Direction::bidirectional);
  check_outputs(c, static_cast<std::size_t>(in.states) + 1);
  require_rank(c, 0, 3, 3, "X");
  const auto& x = c.shape(0);
  const Dim batch = x.ranked() ? x[0] : Dim(), time = x.ranked() ? x[1] : Dim();
  const Dim directions = direction == Direction::bidirectional ? 2 : 1;
  const Dim hidden =
      check_inputs(c, op, in, gates, biases, {directions}, {batch, directions}, x.ranked() ? x[2] : Dim());
  if (const auto i = static_cast<std::size_t>(in.lengths); c.has(i)) {
    require_integer(c, i, "sequence lengths");
    require_shape(c, i, Shape{batch}, "sequence lengths");
    if (const auto lengths = c.ints(i))
      for (auto l : *lengths)
        c.require(l >= 0 && l <= time.high(), "sequence length {}, wanted 0 to {}", l, to_string(time));
  }
  if (c.outputs() > 0) c.set(0, c.element(0), Shape{batch, directions, time, hidden});
  for (std::size_t i = 1; i < c.outputs(); ++i) c.set(i, c.element(0), Shape{batch, directions, hidden});
}

constexpr Inputs kLstmCell{-1, 3, 4, 5, 6, 2}, kGruCell{-1, 2, 3, 4, -1, 1}, kRnnCell = kGruCell;
constexpr Inputs kLstmSequence{3, 4, 5, 6, 7, 2}, kGruSequence{2, 3, 4, 5, -1, 1},
    kRnnSequence = kGruSequence;

RecurrentTask task_of(const EvalContext& c, const Recurrent& op, const Inputs& in, RecurrentKind kind) {
  const auto index = [](int i) { return static_cast<std::size_t>(i); };
  const auto values = [&](int i) {
    return i >= 0 && c.has(index(i)) ? c.doubles(index(i)) : std::vector<double>();
  };
  RecurrentTask t;
  t.kind = kind;
  const auto& x = c.dims(0);
  t.batch = x[0];
  t.time = x.size() == 3 ? x[1] : 1;
  t.input = x.back();
  t.hidden = c.dims(index(in.r)).back();
  t.x = values(0);
  t.h = values(1);
  if (in.states == 2) t.c = values(2);
  t.w = values(in.w);
  t.r = values(in.r);
  t.b = values(in.b);
  t.p = values(in.p);
  if (in.lengths >= 0 && c.has(index(in.lengths))) t.lengths = c.ints(index(in.lengths));
  t.clip = op.clip;
  t.activations = activations_of(op);
  return t;
}

void store_cell(EvalContext& c, const RecurrentResult& r) {
  c.store(0, r.h);
  if (c.outputs() > 1) c.store(1, r.c);
}

void store_sequence(EvalContext& c, const RecurrentResult& r) {
  if (c.outputs() > 0) c.store(0, r.y);
  if (c.outputs() > 1) c.store(1, r.h);
  if (c.outputs() > 2) c.store(2, r.c);
}

}  // namespace

void LSTMCell::infer(InferContext& c) const { infer_cell(c, *this, kLstmCell, 4, 4, 3); }
void GRUCell::infer(InferContext& c) const {
  infer_cell(c, *this, kGruCell, 3, linear_before_reset ? 4 : 3, 2);
}
void RNNCell::infer(InferContext& c) const { infer_cell(c, *this, kRnnCell, 1, 1, 1); }

void LSTMSequence::infer(InferContext& c) const {
  infer_sequence(c, *this, direction, kLstmSequence, 4, 4, 3);
}
void GRUSequence::infer(InferContext& c) const {
  infer_sequence(c, *this, direction, kGruSequence, 3, linear_before_reset ? 4 : 3, 2);
}
void RNNSequence::infer(InferContext& c) const { infer_sequence(c, *this, direction, kRnnSequence, 1, 1, 1); }

void LSTMCell::evaluate(EvalContext& c) const {
  auto t = task_of(c, *this, kLstmCell, RecurrentKind::lstm);
  t.coupled = input_forget;
  store_cell(c, run(t));
}

void GRUCell::evaluate(EvalContext& c) const {
  auto t = task_of(c, *this, kGruCell, RecurrentKind::gru);
  t.linear_before_reset = linear_before_reset;
  store_cell(c, run(t));
}

void RNNCell::evaluate(EvalContext& c) const {
  store_cell(c, run(task_of(c, *this, kRnnCell, RecurrentKind::rnn)));
}

void LSTMSequence::evaluate(EvalContext& c) const {
  auto t = task_of(c, *this, kLstmSequence, RecurrentKind::lstm);
  t.direction = direction;
  t.coupled = input_forget;
  store_sequence(c, run(t));
}

void GRUSequence::evaluate(EvalContext& c) const {
  auto t = task_of(c, *this, kGruSequence, RecurrentKind::gru);
  t.direction = direction;
  t.linear_before_reset = linear_before_reset;
  store_sequence(c, run(t));
}

void RNNSequence::evaluate(EvalContext& c) const {
  auto t = task_of(c, *this, kRnnSequence, RecurrentKind::rnn);
  t.direction = direction;
  store_sequence(c, run(t));
}

void register_recurrent(Registry& r) {
  r.add<LSTMCell>();
  r.add<GRUCell>();
  r.add<RNNCell>();
  r.add<LSTMSequence>();
  r.add<GRUSequence>();
  r.add<RNNSequence>();
}

}  // namespace lamina
