#include "ops/recurrent.h"

#include "op_testing.h"

namespace lamina {
namespace {

using namespace testing;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// Weights that pass the input to every gate with a factor of its own, hidden size 1.
TEST(LSTMCell, by_the_formula) {
  LSTMCell op;
  op.hidden_size = 1;
  const double x = 0.5, h = 0.25, c = -0.75;
  const auto w = floats({4, 1}, {1, 2, 3, 4}), r = floats({4, 1}, {-1, 1, 2, -2}),
             b = floats({0.1f, 0.2f, 0.3f, 0.4f});
  const double f = sigmoid(x - h + 0.1), i = sigmoid(2 * x + h + 0.2), g = std::tanh(3 * x + 2 * h + 0.3),
               o = sigmoid(4 * x - 2 * h + 0.4);
  const double now = f * c + i * g;
  const auto y = evaluate_all(
      op, {floats({1, 1}, {0.5f}), floats({1, 1}, {0.25f}), floats({1, 1}, {-0.75f}), w, r, b}, 2);
  expect_values(y[0], {1, 1}, {o * std::tanh(now)}, 1e-7);
  expect_values(y[1], {1, 1}, {now}, 1e-7);
}

TEST(LSTMCell, peepholes_clip_and_coupled_gates) {
  LSTMCell op;
  op.clip = 0.5;
  const auto w = floats({4, 1}, {1, 1, 1, 1}), r = floats({4, 1}, {0, 0, 0, 0});
  const auto one = floats({1, 1}, {1}), zero = floats({1, 1}, {0}), b = floats({4}, {0, 0, 0, 0});
  auto y = evaluate_all(op, {one, zero, one, w, r, b}, 2);
  expect_values(y[1], {1, 1}, {sigmoid(0.5) + sigmoid(0.5) * std::tanh(0.5)}, 1e-7);
  op.clip = 0;
  // i, o, f
  y = evaluate_all(op, {zero, zero, one, w, r, b, floats({1, 2, 3})}, 2);
  expect_values(y[1], {1, 1}, {sigmoid(3)}, 1e-7);
  expect_values(y[0], {1, 1}, {sigmoid(2 * sigmoid(3)) * std::tanh(sigmoid(3))}, 1e-7);
  op.input_forget = true;
  y = evaluate_all(op, {one, zero, one, w, r, b}, 2);
  expect_values(y[1], {1, 1}, {1 - sigmoid(1) + sigmoid(1) * std::tanh(1)}, 1e-7);
}

TEST(GRUCell, both_forms) {
  GRUCell op;
  op.hidden_size = 1;
  const double x = 0.5, h = 0.25;
  const auto w = floats({3, 1}, {1, 2, 3}), r = floats({3, 1}, {-1, 1, 2});
  const auto xs = floats({1, 1}, {0.5f}), hs = floats({1, 1}, {0.25f});
  const double z = sigmoid(x - h + 0.5), reset = sigmoid(2 * x + h + 1);
  double n = std::tanh(3 * x + 2 * reset * h + 2);
  expect_values(evaluate(op, {xs, hs, w, r, floats({0.5f, 1, 2})}), {1, 1}, {(1 - z) * n + z * h}, 1e-7);
  op.linear_before_reset = true;
  n = std::tanh(3 * x + reset * (2 * h + 3) + 2);
  expect_values(evaluate(op, {xs, hs, w, r, floats({0.5f, 1, 2, 3})}), {1, 1}, {(1 - z) * n + z * h}, 1e-7);
  EXPECT_ERROR(infer(op, {f32({1, 1}), f32({1, 1}), f32({3, 1}), f32({3, 1}), f32({3})}),
               "B has shape [3], wanted [4]");
}

TEST(RNNCell, activations) {
  RNNCell op;
  const auto run = [&](double x) {
    return to_doubles(evaluate(op, {floats({1, 1}, {static_cast<float>(x)}), floats({1, 1}, {0}),
                                    floats({1, 1}, {1}), floats({1, 1}, {0})}))[0];
  };
  EXPECT_NEAR(run(1), std::tanh(1), 1e-7);
  op.activations = {"Relu"};
  EXPECT_EQ(run(-1), 0);
  op.activations = {"leakyrelu"};
  EXPECT_NEAR(run(-1), -0.01, 1e-9);
  op.activations = {"affine"};
  op.activations_alpha = {2};
  op.activations_beta = {3};
  EXPECT_EQ(run(5), 13);
  op.activations = {"hardsigmoid"};
  op.activations_alpha = op.activations_beta = {};
  EXPECT_NEAR(run(1), 0.7, 1e-7);
  op.activations = {"gelu"};
  EXPECT_ERROR(run(1), "activation \"gelu\" is not known");
  op.activations = {};
  EXPECT_ERROR(run(1), "0 activations, wanted 1");
}

RNNSequence sums(Direction direction) {
  RNNSequence op;
  op.hidden_size = 1;
  op.activations = {"affine"};  // h = x + h before
  op.direction = direction;
  return op;
}

TEST(RNNSequence, directions_and_lengths) {
  const auto x = floats({2, 3, 1}, {1, 2, 3, 10, 20, 30});
  const auto w = floats({1, 1, 1}, {1}), h = floats({2, 1, 1}, {100, 0});
  auto y = evaluate_all(sums(Direction::forward), {x, h, ints({3, 2}), w, w}, 2);
  expect_values(y[0], {2, 1, 3, 1}, {101, 103, 106, 10, 30, 0});
  expect_values(y[1], {2, 1, 1}, {106, 30});
  y = evaluate_all(sums(Direction::reverse), {x, {}, ints({3, 2}), w, w}, 2);
  expect_values(y[0], {2, 1, 3, 1}, {6, 5, 3, 30, 20, 0});
  expect_values(y[1], {2, 1, 1}, {6, 30});
  const auto both = floats({2, 1, 1}, {1, 2});
  y = evaluate_all(sums(Direction::bidirectional), {x, {}, {}, both, floats({2, 1, 1}, {1, 1})}, 2);
  expect_values(y[0], {2, 2, 3, 1}, {1, 3, 6, 12, 10, 6, 10, 30, 60, 120, 100, 60});
  expect_values(y[1], {2, 2, 1}, {6, 12, 60, 120});
}

TEST(RNNSequence, activations_of_the_reverse_direction) {
  auto op = sums(Direction::bidirectional);
  op.activations = {"affine", "relu"};
  const auto w = floats({2, 1, 1}, {1, 1}), zero = floats({2, 1, 1}, {0, 0});
  const auto y = evaluate_all(op, {floats({1, 1, 1}, {-4}), {}, {}, w, zero}, 2);
  expect_values(y[1], {1, 2, 1}, {-4, 0});
}

/// A sequence is its cell, step by step.
TEST(LSTMSequence, repeats_the_cell) {
  const std::int64_t time = 3, input = 2, hidden = 3;
  const auto x = counting({1, time, input});
  std::vector<float> numbers;
  for (int i = 0; i < 4 * 3 * 3; ++i) numbers.push_back(static_cast<float>(i * 7 % 13 - 6) / 10);
  const auto w = floats({4 * hidden, input}, {numbers.begin(), numbers.begin() + 4 * hidden * input});
  const auto r = floats({4 * hidden, hidden}, numbers),
             b = floats({4 * hidden}, {numbers.begin(), numbers.begin() + 4 * hidden});
  Tensor h = floats({1, hidden}, {0.1f, 0.2f, 0.3f}), c = floats({1, hidden}, {-0.1f, 0, 0.1f});
  LSTMSequence op;
  op.hidden_size = hidden;
  const auto y = evaluate_all(op,
                              {x,
                               h.reshaped({1, 1, hidden}),
                               c.reshaped({1, 1, hidden}),
                               {},
                               w.reshaped({1, 4 * hidden, input}),
                               r.reshaped({1, 4 * hidden, hidden}),
                               b.reshaped({1, 4 * hidden})},
                              3);
  std::vector<double> all;
  for (std::int64_t t = 0; t < time; ++t) {
    const auto step = floats({1, input}, {static_cast<float>(2 * t), static_cast<float>(2 * t + 1)});
    const auto out = evaluate_all(LSTMCell{}, {step, h, c, w, r, b}, 2);
    h = out[0];
    c = out[1];
    for (auto v : to_doubles(h)) all.push_back(v);
  }
  expect_values(y[0], {1, 1, time, hidden}, all, 1e-6);
  expect_values(y[1], {1, 1, hidden}, to_doubles(h), 1e-6);
  expect_values(y[2], {1, 1, hidden}, to_doubles(c), 1e-6);
}

TEST(GRUSequence, repeats_the_cell) {
  const auto w = floats({3, 1}, {1, 2, 3}), r = floats({3, 1}, {-1, 1, 2});
  for (bool linear : {false, true}) {
    const auto b = linear ? floats({0.1f, 0.2f, 0.3f, 0.4f}) : floats({0.1f, 0.2f, 0.3f});
    GRUCell cell;
    cell.linear_before_reset = linear;
    auto h = evaluate(cell, {floats({1, 1}, {1}), floats({1, 1}, {0}), w, r, b});
    h = evaluate(cell, {floats({1, 1}, {2}), h, w, r, b});
    GRUSequence op;
    op.linear_before_reset = linear;
    const auto y = evaluate_all(op,
                                {floats({1, 2, 1}, {1, 2}),
                                 {},
                                 {},
                                 w.reshaped({1, 3, 1}),
                                 r.reshaped({1, 3, 1}),
                                 b.reshaped({1, linear ? 4 : 3})},
                                2);
    expect_values(y[1], {1, 1, 1}, to_doubles(h), 1e-6);
  }
}

TEST(Recurrent, shapes) {
  LSTMSequence op;
  op.hidden_size = 8;
  op.direction = Direction::bidirectional;
  const TensorType none;
  const std::vector<Known> inputs{f32({dim("N"), dim("T"), 4}),
                                  f32({dim("N"), 2, 8}),
                                  f32({dim("N"), 2, 8}),
                                  TensorType{ElementType::i32, {dim("N")}},
                                  f32({2, 32, 4}),
                                  f32({2, 32, 8}),
                                  f32({2, 32})};
  const auto types = infer_all(op, inputs, 3);
  EXPECT_EQ(to_string(types[0]), "f32[N,2,T,8]");
  EXPECT_EQ(to_string(types[2]), "f32[N,2,8]");
  auto wrong = inputs;
  wrong[4] = f32({2, 24, 4});
  EXPECT_ERROR(infer_all(op, wrong, 3), "W has shape [2,24,4], wanted [2,32,4]");
  wrong = inputs;
  wrong[5] = f32({2, 32, 7});
  EXPECT_ERROR(infer_all(op, wrong, 3), "hidden size of the recurrence weights is 7, wanted 8");
  wrong = inputs;
  wrong[4] = Tensor();
  EXPECT_ERROR(infer_all(op, wrong, 3), "input 4 (weights) is missing");
  wrong = inputs;
  wrong[0] = f32({1, 3, 4});
  wrong[3] = ints({4});
  EXPECT_ERROR(infer_all(op, wrong, 3), "sequence length 4, wanted 0 to 3");
  op.hidden_size = -1;
  EXPECT_ERROR(infer_all(op, inputs, 3), "hidden_size is -1");
  EXPECT_EQ(infer(LSTMCell{}, {f32({dim("N"), 4}), f32({dim("N"), 8}), f32({dim("N"), 8}), f32({32, 4}),
                               f32({32, 8}), f32({32})}),
            "f32[N,8]");
}

}  // namespace
}  // namespace lamina
