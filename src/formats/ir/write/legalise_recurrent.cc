// Cells and sequences: OpenVINO wants every state, length and bias to be given, knows three activations, the
// same for both directions, and no peepholes.
#include <algorithm>

#include "formats/ir/text.h"
#include "formats/ir/write/recurrent_parts.h"
#include "ops/elementwise.h"
#include "ops/movement.h"
#include "ops/shaping.h"

namespace lamina::ir {
namespace {

template <class T>
inline constexpr bool is_lstm = std::is_same_v<T, LSTMSequence> || std::is_same_v<T, LSTMCell>;
template <class T>
inline constexpr bool is_gru = std::is_same_v<T, GRUSequence> || std::is_same_v<T, GRUCell>;
template <class T>
constexpr std::size_t states_of() {
  return is_lstm<T> ? 2 : 1;
}
template <class T>
constexpr std::size_t functions_of() {
  return is_lstm<T> ? 3 : is_gru<T> ? 2 : 1;
}

template <class T>
std::int64_t gates_of(const T& op) {
  if constexpr (is_gru<T>) return op.linear_before_reset ? 4 : 3;
  return is_lstm<T> ? 4 : 1;
}

ValueId zeros(Legalisation& c, const Dims& dims, ElementType type, const std::string& name) {
  return c.add_constant(Tensor(type, dims), name);
}

bool openvino_has(const Strings& activations) {
  return std::all_of(activations.begin(), activations.end(), [](const std::string& name) {
    return name == "sigmoid" || name == "tanh" || name == "relu";
  });
}

bool all_zero(Legalisation& c, ValueId value) {
  const Tensor* tensor = c.constant(value);
  if (!tensor) return false;
  const auto numbers = to_doubles(*tensor);
  return std::all_of(numbers.begin(), numbers.end(), [](double v) { return v == 0; });
}

/// `input`: of the peepholes of an LSTM.
template <class T>
bool is_usual(Legalisation& c, const T& op, std::size_t input) {
  if constexpr (is_lstm<T>)
    if (op.input_forget || (c.has(input) && !all_zero(c, c.in(input)))) return false;
  return openvino_has(op.activations) && op.activations.size() == functions_of<T>();
}

/// The operator with its hidden size, which inference takes from the weights of the recurrence.
template <class T>
T with_hidden_size(Legalisation& c, std::size_t recurrence) {
  T op = c.op<T>();
  for (auto& name : op.activations) name = lower(name);
  const Shape& weights = c.shape(c.in(recurrence));
  if (op.hidden_size == 0) {
    if (!weights.ranked() || !weights[weights.rank() - 1].known()) c.refuse("an unknown hidden size");
    op.hidden_size = weights[weights.rank() - 1].size();
  }
  return op;
}

/// [N, D, h] zeros.
ValueId no_state(Legalisation& c, std::int64_t directions, std::int64_t hidden, const std::string& name) {
  const ElementType type = c.element(c.in(0));
  const Shape x = c.shape(c.in(0));
  if (x.ranked() && x[0].known()) return zeros(c, {x[0].size(), directions, hidden}, type, name);
  const ValueId batch = c.reshaped(c.size_of(c.in(0), 0, name + "_batch"), {1}, name + "_batch_list");
  const ValueId shape =
      c.add(Concat{0}, {batch, c.ints({directions, hidden}, name + "_rest")}, name + "_shape");
  return c.add(Broadcast{}, {c.number(0, type, name + "_zero"), shape}, name);
}

/// [N], each the whole time.
ValueId whole_time(Legalisation& c) {
  const ValueId time = c.size_of(c.in(0), 1, "whole");
  const ValueId batch = c.reshaped(c.size_of(c.in(0), 0, "batch"), {1}, "batch_list");
  return c.add(Broadcast{}, {time, batch}, "lengths");
}

template <class Cell, class Sequence>
Op cell_of(const Sequence& op, std::size_t direction) {
  Cell cell;
  static_cast<Recurrent&>(cell) = op;
  if constexpr (is_lstm<Sequence>) cell.input_forget = op.input_forget;
  if constexpr (is_gru<Sequence>) cell.linear_before_reset = op.linear_before_reset;
  constexpr auto kCount = static_cast<std::ptrdiff_t>(functions_of<Sequence>());
  if (std::ssize(op.activations) != 2 * kCount) return cell;
  const auto part = [&](auto& list) {
    const auto from =
        std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(direction) * kCount, std::ssize(list));
    const auto to = std::min<std::ptrdiff_t>(from + kCount, std::ssize(list));
    list = std::decay_t<decltype(list)>(list.begin() + from, list.begin() + to);
  };
  part(cell.activations);
  part(cell.activations_alpha);
  part(cell.activations_beta);
  return cell;
}

template <class Sequence, class Cell>
std::vector<ValueId> sequence(Legalisation& c) {
  constexpr std::size_t kStates = states_of<Sequence>(), kLengths = 1 + kStates, kWeights = kLengths + 1,
                        kBias = kWeights + 2, kPeepholes = kBias + 1;
  Sequence op = with_hidden_size<Sequence>(c, kWeights + 1);
  const bool usual = is_usual(c, op, kPeepholes);
  bool complete = c.inputs() == kBias + 1 && c.op<Sequence>().hidden_size == op.hidden_size &&
                  c.outputs() == static_cast<int>(kStates) + 1;
  for (std::size_t i = 0; i <= kBias; ++i) complete = complete && c.has(i);
  if (complete && usual) return {};
  const bool both = op.direction == Direction::bidirectional;
  const std::int64_t directions = both ? 2 : 1;
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i <= kBias; ++i) inputs.push_back(c.in(i));
  for (std::size_t i = 1; i <= kStates; ++i)
    if (!c.has(i)) inputs[i] = no_state(c, directions, op.hidden_size, fmt::format("state{}", i));
  if (!c.has(kLengths)) inputs[kLengths] = whole_time(c);
  if (!c.has(kBias))
    inputs[kBias] = zeros(c, {directions, gates_of(op) * op.hidden_size}, c.element(c.in(kWeights)), "bias");
  if (usual) return c.add_many(op, std::move(inputs), static_cast<int>(kStates) + 1, "sequence");
  SequenceInputs in{inputs[0], inputs[kLengths], {}, {}};
  in.states.assign(inputs.begin() + 1, inputs.begin() + kLengths);
  in.parameters.assign(inputs.begin() + kWeights, inputs.end());
  if (c.has(kPeepholes)) in.parameters.push_back(c.in(kPeepholes));
  std::vector<Op> cells = {cell_of<Cell>(op, 0)};
  if (both) cells.push_back(cell_of<Cell>(op, 1));
  return sequence_in_steps(c, in, cells, op.direction);
}

template <class Cell>
std::vector<ValueId> cell(Legalisation& c) {
  constexpr std::size_t kStates = states_of<Cell>(), kBias = 3 + kStates;
  const Cell op = with_hidden_size<Cell>(c, kBias - 1);
  if (!is_usual(c, op, kBias + 1)) {
    if constexpr (is_lstm<Cell>) return lstm_in_parts(c);
    if constexpr (is_gru<Cell>) return gru_in_parts(c);
    return rnn_in_parts(c);
  }
  if (c.inputs() == kBias + 1 && c.has(kBias) && c.op<Cell>().hidden_size == op.hidden_size &&
      c.outputs() == static_cast<int>(kStates))
    return {};
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i <= kBias; ++i) inputs.push_back(c.in(i));
  if (!c.has(kBias))
    inputs[kBias] = zeros(c, {gates_of(op) * op.hidden_size}, c.element(c.in(kBias - 1)), "bias");
  return c.add_many(op, std::move(inputs), static_cast<int>(kStates), "cell");
}

}  // namespace

void register_recurrent(LegalisationTable& t) {
  t.add("LSTMSequence", sequence<LSTMSequence, LSTMCell>);
  t.add("GRUSequence", sequence<GRUSequence, GRUCell>);
  t.add("RNNSequence", sequence<RNNSequence, RNNCell>);
  t.add("LSTMCell", cell<LSTMCell>);
  t.add("GRUCell", cell<GRUCell>);
  t.add("RNNCell", cell<RNNCell>);
}

}  // namespace lamina::ir
