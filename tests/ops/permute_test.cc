/// The hook `permute`: what an operator says of itself with its axes permuted gives what it gives.
#include "ops/normalization.h"
#include "tests/ops/permutable.h"

namespace lamina::testing {
namespace {

Tensor transpose(const Tensor& x, const Ints& order) { return evaluate(Transpose{}, {x, ints(order)}); }

/// The operand as the operator with permuted axes reads it.
Tensor permuted_operand(const Tensor& t, const PermutedInput& how, const Ints& order) {
  if (how.kind == PermutedInput::Kind::replaced) return how.value;
  if (how.kind == PermutedInput::Kind::same) return t;
  const auto own = how.shape.known() ? how.shape.sizes() : t.shape();
  Dims dims(order.size() - own.size(), 1);
  dims.insert(dims.end(), own.begin(), own.end());
  return transpose(t.reshaped(dims), inverse_order(order));
}

/// The instance by itself and through its hook.
void expect_same(const Instance& instance, const Ints& order) {
  const auto wanted = evaluate(instance.op, instance.inputs);
  Node node;
  node.op = instance.op;
  node.inputs.resize(instance.inputs.size());
  node.outputs.resize(1);
  for (std::uint32_t i = 0; i < node.inputs.size(); ++i) node.inputs[i] = ValueId{i};
  const InferContext types(node, instance.inputs);
  PermuteContext context(types, order);
  const auto verdict = instance.op->permute(context);
  if (!verdict && keeps_batch_first(instance.op.name())) return;
  ASSERT_TRUE(verdict) << verdict.reason();
  const auto& made = context.result();
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < made.inputs.size(); ++i)
    inputs.push_back(
        permuted_operand(i < instance.inputs.size() ? instance.inputs[i] : Tensor(), made.inputs[i], order));
  const auto got = transpose(evaluate(made.op, inputs), made.outputs.at(0));
  EXPECT_TRUE(got.same_as(wanted)) << instance.op.name() << to_string(instance.inputs[0].shape()) << " order "
                                   << to_string(order);
}

class Permute : public ::testing::TestWithParam<std::string> {};

TEST_P(Permute, givesTheSame) {
  int tried = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const auto instance = RandomInstance(seed)(GetParam());
    ASSERT_FALSE(instance.inputs.empty()) << "tests/ops/permutable.h has no recipe for it";
    for (const auto& order : all_orders(instance.inputs[0].rank())) {
      expect_same(instance, order);
      ++tried;
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(tried, 300);
}

INSTANTIATE_TEST_SUITE_P(Operators, Permute, ::testing::ValuesIn(permutable_operators()),
                         [](const auto& p) { return p.param; });

TEST(PermuteHook, everyElementwiseOperatorHasIt) {
  const auto have = permutable_operators();
  for (const auto& name : operators().names())
    if (lamina::has(operators().find(name)->info().traits, Trait::elementwise)) {
      EXPECT_TRUE(std::find(have.begin(), have.end(), name) != have.end()) << name;
    }
}

/// The refusal of a node, or "".
std::string refusal(Op op, const std::vector<Known>& inputs, const Ints& order) {
  Graph graph;
  std::vector<ValueId> values;
  for (const auto& input : inputs)
    values.push_back(std::holds_alternative<TensorType>(input)
                         ? graph.add_input("", std::get<TensorType>(input))
                         : graph.add_constant(std::get<Tensor>(input)));
  const auto id = graph.add_node(std::move(op), values, "n", 1);
  return permuted(graph, graph.node(id), order).verdict.reason();
}

TEST(PermuteHook, refusesWithAReason) {
  const auto x = f32({2, 3, 4});
  EXPECT_EQ(refusal(LRN{}, {x, ints({1})}, {0, 2, 1}), "LRN depends on the order of its axes");
  EXPECT_EQ(refusal(Relu{}, {f32(Shape())}, {0, 1}), "the rank of what Relu reads is not known");
  EXPECT_EQ(refusal(Add{}, {x, f32(Shape())}, {0, 2, 1}),
            "its input 1 has the shape [...], wanted a rank of at most 3");
  EXPECT_EQ(refusal(Add{}, {x, f32({1, 2, 3, 4})}, {0, 2, 1}),
            "its input 1 has the shape [1,2,3,4], wanted a rank of at most 3");
  EXPECT_EQ(refusal(PRelu{}, {f32({2, dim("C"), 4}), f32({4})}, {0, 2, 1}),
            "it is not known along which axis its slope lies");
  EXPECT_EQ(refusal(Pad{}, {x, TensorType{ElementType::i64, {3}}, ints({0, 0, 0})}, {0, 2, 1}),
            "its pads are not known");
  EXPECT_EQ(refusal(Tile{}, {x, ints({2, 1, 1, 1})}, {0, 2, 1}), "it adds axes");
  EXPECT_EQ(refusal(Gather{1}, {x, TensorType{ElementType::i64, {2, 3}}, Tensor::scalar<std::int64_t>(1)},
                    {0, 2, 1}),
            "it has batch dimensions");
  EXPECT_EQ(refusal(Quantize{.axis = 5}, {x, f32({dim("k")})}, {0, 2, 1}), "axis is 5, wanted -3..2");
}

}  // namespace
}  // namespace lamina::testing
