/// RNN, GRU, LSTM: weights in our order of gates, batch before time.
#include "ops/recurrent.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "formats/onnx/build.h"
#include "formats/onnx/recurrent.h"
#include "ops/elementwise.h"

namespace lamina::onnx {
namespace {

/// The parameters that a function takes, and their defaults.
struct Function {
  std::string_view name;
  std::optional<double> alpha, beta;
};
constexpr Function kFunctions[] = {
    {"sigmoid", {}, {}},          {"tanh", {}, {}},          {"relu", {}, {}},     {"softsign", {}, {}},
    {"softplus", {}, {}},         {"hardsigmoid", 0.2, 0.5}, {"affine", 1.0, 0.0}, {"leakyrelu", 0.01, {}},
    {"thresholdedrelu", 1.0, {}}, {"scaledtanh", 1.0, 1.0},  {"elu", 1.0, {}}};

const Function& function_named(const Call& c, std::string_view name) {
  for (const auto& f : kFunctions)
    if (f.name == name) return f;
  c.unsupported("the activation \"{}\" is not supported", name);
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char ch) { return static_cast<char>(std::tolower(ch)); });
  return text;
}

/// The node's parameters are consumed by the functions that take one, in order; ours stand beside their
/// function.
void read_activations(const Call& c, Recurrent& op) {
  auto names = c.strings("activations");
  if (names.empty()) return;
  for (auto& n : names) n = lower(n);
  const auto alphas = c.floats("activation_alpha"), betas = c.floats("activation_beta");
  std::size_t next_alpha = 0, next_beta = 0;
  bool any = false;
  for (const auto& n : names) {
    const auto& f = function_named(c, n);
    any |= f.alpha.has_value();
    const bool given_alpha = f.alpha && next_alpha < alphas.size(),
               given_beta = f.beta && next_beta < betas.size();
    op.activations_alpha.push_back(given_alpha ? alphas[next_alpha++] : f.alpha.value_or(0));
    op.activations_beta.push_back(given_beta ? betas[next_beta++] : f.beta.value_or(0));
  }
  if (!any) {
    op.activations_alpha.clear();
    op.activations_beta.clear();
  }
  op.activations = std::move(names);
}

Direction read_direction(const Call& c) {
  const auto name = c.s("direction", "forward");
  if (name == "forward") return Direction::forward;
  if (name == "reverse") return Direction::reverse;
  if (name == "bidirectional") return Direction::bidirectional;
  c.fail("direction is \"{}\", wanted forward, reverse or bidirectional", name);
}

/// Constant blocks of rows along axis 1 in another order.
Tensor reordered(const Tensor& t, const Ints& order, std::size_t blocks) {
  if (t.size() == 0) return t;
  Tensor out(t.element_type(), t.shape());
  const auto directions = static_cast<std::size_t>(t.shape()[0]);
  const auto part = t.bytes() / std::max<std::size_t>(directions * blocks, 1);
  for (std::size_t d = 0; d < directions; ++d)
    for (std::size_t b = 0; b < order.size(); ++b)
      std::memcpy(out.raw() + (d * blocks + b) * part,
                  t.raw() + (d * blocks + static_cast<std::size_t>(order[b])) * part, part);
  return out;
}

/// Adds two constants of the same shape, or two values.
ValueId sum(Call& c, ValueId a, ValueId b) {
  const bool constant = c.graph().constant(a) && c.graph().constant(b);
  const auto y = add(c, a, b);
  return constant ? folded(c, y) : y;
}

/// Blocks [from, from + count) of `hidden` elements along axis 1.
ValueId blocks(Call& c, ValueId v, std::int64_t hidden, std::int64_t from, std::int64_t count) {
  const auto y = c.slice(v, 1, from * hidden, (from + count) * hidden);
  return c.graph().constant(v) ? folded(c, y) : y;
}

/// W's and R's halves of a bias [D, 2 * gates * h] as one [D, gates * h]. GRUs that reset after the product
/// keep the two biases of their last gate apart: [D, 4 * h].
ValueId joined_bias(Call& c, ValueId b, std::int64_t gates, std::int64_t hidden, const Ints& order,
                    bool keep_last) {
  const auto of_w = reorder_gates(c, blocks(c, b, hidden, 0, gates), order, hidden);
  const auto of_r = reorder_gates(c, blocks(c, b, hidden, gates, gates), order, hidden);
  if (!keep_last) return sum(c, of_w, of_r);
  const auto shared = sum(c, blocks(c, of_w, hidden, 0, 2), blocks(c, of_r, hidden, 0, 2));
  const auto y = c.concat({shared, blocks(c, of_w, hidden, 2, 1), blocks(c, of_r, hidden, 2, 1)}, 1);
  return c.graph().constant(b) ? folded(c, y) : y;
}

struct Layout {
  bool batch_first = false;
  ValueId x(Call& c, ValueId v) const { return batch_first ? v : c.transpose(v, {1, 0, 2}); }
  ValueId state(Call& c, ValueId v) const {
    return !v.valid() || batch_first ? v : c.transpose(v, {1, 0, 2});
  }
  /// The output Y from [N, D, T, h].
  ValueId y(Call& c, ValueId v) const {
    return batch_first ? c.transpose(v, {0, 2, 1, 3}) : c.transpose(v, {2, 1, 0, 3});
  }
};

Layout read_layout(const Call& c) {
  const auto layout = c.i("layout", 0);
  if (layout != 0 && layout != 1) c.fail("layout is {}, wanted 0 or 1", layout);
  return {layout == 1};
}

template <class Op>
Op read_op(const Call& c, std::int64_t hidden) {
  Op op;
  op.hidden_size = hidden;
  op.clip = c.f("clip", 0);
  op.direction = read_direction(c);
  read_activations(c, op);
  return op;
}

void drop_absent_tail(Values& inputs) {
  while (!inputs.back().valid()) inputs.pop_back();
}

Values convert_lstm(Call& c) {
  const auto hidden = hidden_size(c, c.in(2));
  const Ints order{2, 0, 3, 1};  // i, o, f, c becomes f, i, c, o
  LstmParts parts;
  parts.w = reorder_gates(c, c.in(1), order, hidden);
  parts.r = reorder_gates(c, c.in(2), order, hidden);
  if (c.has(3)) parts.b = joined_bias(c, c.in(3), 4, hidden, order, false);
  return build_lstm(c, parts, hidden);
}

Values convert_gru(Call& c) {
  const auto hidden = hidden_size(c, c.in(2));
  const auto layout = read_layout(c);
  auto op = read_op<GRUSequence>(c, hidden);
  op.linear_before_reset = c.flag("linear_before_reset");
  Values inputs{layout.x(c, c.in(0)), layout.state(c, c.maybe(5)), c.maybe(4), c.in(1), c.in(2)};
  if (c.has(3)) inputs.push_back(joined_bias(c, c.in(3), 3, hidden, {0, 1, 2}, op.linear_before_reset));
  const auto out = c.add_all(op, std::move(inputs));
  return {layout.y(c, out[0]), layout.state(c, out[1])};
}

Values convert_rnn(Call& c) {
  const auto hidden = hidden_size(c, c.in(2));
  const auto layout = read_layout(c);
  const auto op = read_op<RNNSequence>(c, hidden);
  Values inputs{layout.x(c, c.in(0)), layout.state(c, c.maybe(5)), c.maybe(4), c.in(1), c.in(2)};
  if (c.has(3)) inputs.push_back(joined_bias(c, c.in(3), 1, hidden, {0}, false));
  const auto out = c.add_all(op, std::move(inputs));
  return {layout.y(c, out[0]), layout.state(c, out[1])};
}

}  // namespace

std::int64_t hidden_size(const Call& c, ValueId r) {
  const auto given = c.i("hidden_size", 0);
  const auto& shape = c.type(r).shape;
  if (shape.ranked() && shape.rank() != 3) c.fail("recurrence weights have rank {}, wanted 3", shape.rank());
  if (given < 0 || given > (std::int64_t{1} << 30)) c.fail("hidden_size is {}, wanted 1 or more", given);
  if (given > 0) return given;
  if (!shape.ranked() || !shape[2].known()) c.unsupported("an unknown hidden size");
  if (shape[2].size() > (std::int64_t{1} << 30)) c.fail("the hidden size is {}", shape[2].size());
  return shape[2].size();
}

ValueId reorder_gates(Call& c, ValueId v, const Ints& order, std::int64_t hidden) {
  if (std::is_sorted(order.begin(), order.end())) return v;
  const auto& shape = c.type(v).shape;
  const auto gates = static_cast<std::int64_t>(order.size());
  if (shape.ranked() && (shape.rank() < 2 || !shape[1].fits(Dim(gates * hidden))))
    c.fail("weights are {}, wanted {} along axis 1", to_string(shape), gates * hidden);
  if (const auto* t = c.graph().constant(v)) return c.constant(reordered(*t, order, order.size()));
  Values parts;
  for (auto g : order) parts.push_back(c.slice(v, 1, g * hidden, (g + 1) * hidden));
  return c.concat(std::move(parts), 1);
}

Values build_lstm(Call& c, const LstmParts& parts, std::int64_t hidden) {
  const auto layout = read_layout(c);
  auto op = read_op<LSTMSequence>(c, hidden);
  op.input_forget = c.flag("input_forget");
  const auto x = parts.x.valid() ? parts.x : c.in(0), h = parts.h.valid() ? parts.h : c.maybe(5);
  Values inputs{layout.x(c, x), layout.state(c, h), layout.state(c, c.maybe(6)), c.maybe(4), parts.w, parts.r,
                parts.b,        c.maybe(7)};
  drop_absent_tail(inputs);
  const auto out = c.add_all(op, std::move(inputs));
  return {layout.y(c, out[0]), layout.state(c, out[1]), layout.state(c, out[2])};
}

LSTMCell lstm_cell(const Call& c, std::int64_t hidden, std::size_t direction, std::size_t count) {
  LSTMCell op;
  op.hidden_size = hidden;
  op.clip = c.f("clip", 0);
  op.input_forget = c.flag("input_forget");
  read_activations(c, op);
  const auto own = [&](auto& list) {
    if (count < 2 || list.size() % count != 0 || list.size() <= 3) return;
    const auto part = static_cast<std::ptrdiff_t>(list.size() / count),
               first = part * static_cast<std::ptrdiff_t>(direction);
    list = {list.begin() + first, list.begin() + first + part};
  };
  own(op.activations);
  own(op.activations_alpha);
  own(op.activations_beta);
  return op;
}

void register_recurrent(ConverterTable& t) {
  t.add("GRU", convert_gru);
  t.add("LSTM", convert_lstm);
  t.add("RNN", convert_rnn);
}

}  // namespace lamina::onnx
