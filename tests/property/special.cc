/// Integers, quantisation, recurrence, attention, order.
#include <cmath>

#include "ops/activation.h"
#include "ops/attention.h"
#include "ops/elementwise.h"
#include "ops/generation.h"
#include "ops/quantization.h"
#include "ops/recurrent.h"
#include "ops/reduction.h"
#include "ops/shaping.h"
#include "ops/sorting.h"
#include "tests/property/operators.h"

namespace lamina::testing {
namespace {

std::optional<ValueId> pick_integer(GraphBuilder& b) {
  return b.pick([&](ValueId v) { return is_integer(b.element(v)); });
}

ValueId integers(GraphBuilder& b, ElementType type, const Dims& dims) {
  return b.constant(seeded_tensor(type, dims, static_cast<std::uint64_t>(b.below(1000))));
}

void add_integer_arithmetic(GraphBuilder& b) {
  auto x = pick_integer(b);
  if (!x && b.percent(50))
    x = b.input(b.one_of({ElementType::i64, ElementType::i32, ElementType::i8, ElementType::u8}),
                {b.batch(), b.channels(), b.extent()});
  if (!x) return;
  const auto type = b.element(*x);
  static const std::vector<Op> binary{Add{},          Subtract{},          Multiply{}, Divide{},
                                      Maximum{},      Minimum{},           Mod{},      FloorMod{},
                                      BitwiseAnd{},   BitwiseXor{},        Less{},     Equal{},
                                      GreaterEqual{}, SquaredDifference{}, BitwiseOr{}};
  if (b.percent(25)) {
    b.add(b.one_of<Op>({Abs{}, Negative{}, Sign{}, BitwiseNot{}, Clamp{-2, 3}, Relu{}}), {*x});
    return;
  }
  const auto other = b.percent(25) ? *x : integers(b, type, b.broadcastable(b.dims(*x)));
  const auto& op = b.one_of(binary);
  if (b.percent(25))
    b.add(op, {other, *x});
  else
    b.add(op, {*x, other});
}

void add_logic(GraphBuilder& b) {
  const auto x = b.pick([&](ValueId v) { return b.element(v) == ElementType::boolean; });
  if (!x) return;
  if (b.percent(30)) {
    b.add(LogicalNot{}, {*x});
  } else if (b.percent(40)) {
    ReduceLogicalAnd all;
    all.keep_dims = b.percent(50);
    ReduceLogicalOr one;
    one.keep_dims = b.percent(50);
    if (b.rank(*x) > 0) b.add(b.one_of<Op>({all, one}), {*x, b.ints({b.percent(50) ? -1 : 0})});
  } else {
    b.add(b.one_of<Op>({LogicalAnd{}, LogicalOr{}, LogicalXor{}}),
          {*x, integers(b, ElementType::boolean, b.broadcastable(b.dims(*x)))});
  }
}

void add_fake_quantize(GraphBuilder& b) {
  const auto x = b.pick_f32(0, 5);
  if (!x) return;
  Dims range;
  if (b.percent(40) && b.rank(*x) >= 2) {
    range = Dims(b.rank(*x), 1);
    range[1] = b.dims(*x)[1];
  } else if (b.percent(15)) {
    range = b.broadcastable(b.dims(*x));
    if (range.size() > b.rank(*x)) range.clear();
  }
  const bool unsigned_range = b.percent(30);
  const auto low = unsigned_range ? b.number(0) : b.floats(range, -2, -0.5), high = b.floats(range, 0.5, 2);
  const bool same = b.percent(60);
  const Dims other = b.percent(70) ? range : Dims{};
  const auto levels = b.one_of<std::int64_t>({256, 255, 16, 16, 8, 4, 2});
  b.add(FakeQuantize{levels},
        {*x, low, high, same ? low : b.floats(other, -3, -1), same ? high : b.floats(other, 1, 3)});
}

template <class Cell>
Cell recurrent(GraphBuilder& b, std::int64_t hidden) {
  Cell op;
  op.hidden_size = hidden;
  if (b.percent(10)) op.clip = 0.7;
  return op;
}

void add_sequence(GraphBuilder& b) {
  const auto x = b.pick_f32(3, 3);
  if (!x) return;
  const auto n = b.dims(*x)[0], time = b.dims(*x)[1], size = b.dims(*x)[2], h = b.between(1, 6);
  const auto direction = b.one_of({Direction::forward, Direction::reverse, Direction::bidirectional});
  const std::int64_t d = direction == Direction::bidirectional ? 2 : 1;
  const bool lstm = b.percent(60);
  const bool linear = !lstm && b.percent(50);
  const std::int64_t gates = lstm ? 4 : 3;
  const auto state = [&] { return b.percent(50) ? ValueId() : b.partner({n, d, h}); };
  std::vector<ValueId> inputs{*x, state()};
  if (lstm) inputs.push_back(state());
  ValueId lengths;
  if (b.percent(30)) {
    Ints values;
    for (std::int64_t i = 0; i < n; ++i) values.push_back(b.between(1, time));
    lengths = b.ints(values);
  }
  inputs.push_back(lengths);
  inputs.push_back(b.weights({d, gates * h, size}, 1 / std::sqrt(static_cast<double>(size))));
  inputs.push_back(b.weights({d, gates * h, h}, 0.5));
  if (b.percent(70)) inputs.push_back(b.floats({d, (linear ? 4 : gates) * h}));
  if (lstm) {
    auto op = recurrent<LSTMSequence>(b, h);
    op.direction = direction;
    b.add_many(op, inputs, 3);
  } else {
    auto op = recurrent<GRUSequence>(b, h);
    op.direction = direction;
    op.linear_before_reset = linear;
    b.add_many(op, inputs, 2);
  }
}

void add_cell(GraphBuilder& b) {
  const auto x = b.pick_f32(2, 2);
  if (!x) return;
  const auto n = b.dims(*x)[0], size = b.dims(*x)[1], h = b.between(1, 6);
  const auto w = [&](std::int64_t gates, std::int64_t from) { return b.weights({gates * h, from}, 0.6); };
  switch (b.below(3)) {
    case 0:
      b.add_many(recurrent<LSTMCell>(b, h),
                 {*x, b.partner({n, h}), b.partner({n, h}), w(4, size), w(4, h), b.floats({4 * h})}, 2);
      break;
    case 1:
      b.add(recurrent<GRUCell>(b, h), {*x, b.partner({n, h}), w(3, size), w(3, h), b.floats({3 * h})});
      break;
    default:
      b.add(recurrent<RNNCell>(b, h), {*x, b.partner({n, h}), w(1, size), w(1, h)});
  }
}

void add_attention(GraphBuilder& b) {
  const auto q = b.pick_f32(2, 4);
  if (!q) return;
  auto keys = b.dims(*q), values = b.dims(*q);
  keys[keys.size() - 2] = values[values.size() - 2] = b.percent(50) ? keys[keys.size() - 2] : b.extent();
  values.back() = b.channels();
  ScaledDotProductAttention op;
  op.causal = b.percent(25);
  std::vector<ValueId> inputs{*q, b.partner(keys), b.partner(values)};
  if (!op.causal && b.percent(40))
    inputs.push_back(b.floats({b.dims(*q)[b.rank(*q) - 2], keys[keys.size() - 2]}));
  b.add(op, inputs);
}

void add_order(GraphBuilder& b) {
  const auto x = b.pick_f32(1, 4);
  if (!x) return;
  TopK op;
  const auto axis = b.below(static_cast<std::int64_t>(b.rank(*x)));
  op.axis = axis;
  op.mode = b.one_of({TopKMode::max, TopKMode::min});
  op.index_element_type = b.one_of({ElementType::i32, ElementType::i64});
  const auto k = b.percent(50) ? 1 : b.between(1, b.dims(*x)[static_cast<std::size_t>(axis)]);
  b.add_many(op, {*x, b.ints({k}, true)}, 2);
}

void add_running_sum(GraphBuilder& b) {
  const auto x = b.pick_f32(1, 4);
  if (!x) return;
  const auto axis = b.below(static_cast<std::int64_t>(b.rank(*x)));
  b.add(CumSum{b.percent(30), b.percent(30)}, {*x, b.ints({axis}, true)});
}

/// Shapes that depend on data: what follows is planned while running.
void add_data_dependent(GraphBuilder& b) {
  const auto x = b.pick([&](ValueId v) { return !is_float(b.element(v)) && b.rank(v) >= 1; });
  if (!x) return;
  const auto places = b.add(NonZero{}, {*x});
  if (!places || b.sample(*places).size() == 0) return;
  if (const auto t = b.add(Transpose{}, {*places}); t && b.percent(70))
    b.add(Convert{ElementType::f32}, {*t});
}

}  // namespace

void add_special_families(Families& families) {
  families.push_back({"integer arithmetic", 4, add_integer_arithmetic});
  families.push_back({"logic", 2, add_logic});
  families.push_back({"fake quantize", 4, add_fake_quantize});
  families.push_back({"sequence", 2, add_sequence});
  families.push_back({"cell", 2, add_cell});
  families.push_back({"attention", 2, add_attention});
  families.push_back({"order", 1, add_order});
  families.push_back({"running sum", 1, add_running_sum});
  families.push_back({"data dependent", 1, add_data_dependent});
}

}  // namespace lamina::testing
