/// Operators that move elements, on types of less than a byte: they give what they give on f32.
#include "ops/packed.h"

#include "interpreter/interpreter.h"
#include "ops/control.h"
#include "ops/detection.h"
#include "ops/elementwise.h"
#include "ops/gathering.h"
#include "ops/generation.h"
#include "ops/movement.h"
#include "ops/shaping.h"
#include "tests/ops/op_testing.h"

namespace lamina::testing {
namespace {

constexpr ElementType kPacked[] = {ElementType::u1, ElementType::i4,     ElementType::u4, ElementType::i2,
                                   ElementType::u2, ElementType::f4e2m1, ElementType::nf4};

/// Codes that follow no period of a byte.
Tensor codes(ElementType type, Dims dims, unsigned seed = 1) {
  Tensor out(type, std::move(dims));
  for (std::size_t i = 0; i < out.bytes(); ++i)
    out.raw()[i] = static_cast<std::byte>((seed += 0x9e3779b9u * (seed >> 5 | 1)) >> 11);
  return out;
}

struct Moved {
  Op op;
  std::vector<Tensor> inputs;
  std::size_t outputs = 1;
};

std::vector<Moved> moved(ElementType type) {
  const auto x = codes(type, {3, 5, 3}), y = codes(type, {3, 5, 3}, 7), one = codes(type, {}, 3);
  const auto part = codes(type, {3, 2, 3}, 9), planes = codes(type, {1, 4, 6, 6}, 11);
  const Tensor none, axis = ints({1});
  const Tensor yes = of_type(ElementType::boolean, {3, 5, 1}, {1, 0, 0, 1, 1, 0, 1, 0, 1, 1, 1, 0, 0, 0, 1});
  Roll roll;
  OneHot one_hot;
  one_hot.axis = 0;
  return {
      {Transpose{}, {x, ints({2, 0, 1})}},
      {Broadcast{}, {codes(type, {5, 1}), ints({3, 5, 3})}},
      {Tile{}, {x, ints({1, 2, 3})}},
      {Concat{1}, {x, part}},
      {Split{3}, {codes(type, {2, 9}), axis}, 3},
      {VariadicSplit{}, {x, axis, ints({1, -1, 1})}, 3},
      {Slice{}, {x, ints({1, -1}), ints({4, -9}), ints({2, -1}), ints({1, 2})}},
      {SliceScatter{}, {x, part, ints({0}), ints({4}), ints({2}), axis}},
      {StridedSlice{}, {x, ints({0, 1}), ints({3, 4}), ints({1, 2})}},
      {Pad{}, {x, ints({0, 1, 0}), ints({0, 0, 2}), one}},
      {Pad{}, {x, ints({0, 1, 0}), ints({0, 0, 2})}},
      {Pad{PadMode::reflect}, {x, ints({1, 2, 0}), ints({0, 1, 2})}},
      {roll, {x, ints({1, -2}), ints({1, 2})}},
      {ReverseSequence{}, {codes(type, {3, 5}), ints({1, 5, 3})}},
      {Select{}, {yes, x, y}},
      {Gather{}, {x, ints({4, 0, -1, 7}), axis}},
      {GatherElements{1}, {x, of_type(ElementType::i64, {3, 1, 3}, {0, 1, 2, 3, 4, -1, -2, 0, 1})}},
      {GatherND{}, {x, of_type(ElementType::i64, {2, 2}, {0, 1, 2, 4})}},
      {ScatterUpdate{}, {x, ints({4, 0}), part, axis}},
      {ScatterElementsUpdate{}, {codes(type, {5}), ints({3, 0}), codes(type, {2}, 5), ints({0})}},
      {ScatterNDUpdate{}, {x, of_type(ElementType::i64, {1, 1}, {1}), codes(type, {1, 5, 3}, 5)}},
      {one_hot, {ints({0, 2, 1}), ints({4}), one, codes(type, {}, 77)}},
      {Trilu{}, {x, ints({1})}},
      {DepthToSpace{DepthMode::depth_first, 2}, {planes}},
      {SpaceToDepth{DepthMode::blocks_first, 3}, {planes}},
      {ShuffleChannels{1, 2}, {planes}},
      {BatchToSpace{}, {codes(type, {4, 1, 3}), ints({1, 2, 2}), ints({0, 0, 1}), ints({0, 1, 0})}},
      {SpaceToBatch{}, {x, ints({1, 2, 2}), ints({0, 1, 0}), ints({0, 0, 1})}},
  };
}

TEST(Packed, elements_arrive_where_those_of_f32_do) {
  for (const auto type : kPacked)
    for (const auto& m : moved(type)) {
      SCOPED_TRACE(std::string(name_of(type)) + " " + std::string(m.op.name()));
      auto plain = m.inputs;
      for (auto& t : plain)
        if (t.valid() && is_packed(t.element_type())) t = convert(t, ElementType::f32);
      const auto wanted = evaluate_all(m.op, plain, m.outputs), got = evaluate_all(m.op, m.inputs, m.outputs);
      for (std::size_t i = 0; i < m.outputs; ++i) {
        EXPECT_EQ(got[i].element_type(), type);
        expect_values(got[i], wanted[i].shape(), to_doubles(wanted[i]));
      }
    }
}

TEST(Packed, indices_may_be_packed_too) {
  expect_values(evaluate(Gather{}, {counting({3}), of_type(ElementType::i4, {3}, {-1, 0, -3}), ints({0})}),
                {3}, {2, 0, 0});
  expect_values(evaluate(Gather{}, {of_type(ElementType::i4, {3}, {-8, 7, -1}),
                                    of_type(ElementType::i2, {3}, {-1, 0, -2}), ints({0})}),
                {3}, {-1, -8, 7});
}

TEST(Packed, bytes_and_back) {
  for (const auto type : kPacked)
    for (const std::int64_t size : {0, 1, 2, 3, 7, 9, 70001}) {
      const auto x = codes(type, {size});
      const auto bytes = unpacked(x);
      EXPECT_EQ(bytes.bytes(), static_cast<std::size_t>(size));
      EXPECT_EQ(to_doubles(packed_as(type, bytes)), to_doubles(x)) << name_of(type) << size;
      if (is_integer(type)) {
        EXPECT_EQ(to_ints(bytes), to_ints(x));
      }
      if (is_float(type)) {
        EXPECT_EQ(to_doubles(packed_as(type, Tensor(bytes.element_type(), {1}))), std::vector{0.0});
      }
    }
  const Tensor f = floats({1});
  EXPECT_EQ(unpacked(f).raw(), f.raw());
}

/// Slices of three elements, which begin within a byte, go through the body and are joined.
TEST(Packed, loops_cut_and_join) {
  for (const auto type : kPacked) {
    Graph body;
    body.add_input("i", {ElementType::i64, Shape(std::vector<Dim>{})});
    const auto go_on = body.add_input("c", {ElementType::boolean, Shape(std::vector<Dim>{})});
    const auto x = body.add_input("x", {type, Shape{3, 1}});
    body.add_result("c", go_on);
    body.add_result("y", x);
    Loop loop;
    loop.slice_axes = {1};
    loop.concat_axes = {0};
    Graph g;
    const auto whole = g.add_input("x", {type, Shape{3, 5}});
    const auto node = g.add_node(loop, {ValueId{}, ValueId{}, whole}, "n", 1, {body});
    g.add_result("y", g.node(node).outputs[0]);
    const auto given = codes(type, {3, 5});
    const auto wanted = evaluate(Transpose{}, {convert(given, ElementType::f32), ints({1, 0})});
    expect_values(interpret(g, {given})[0], {15, 1}, to_doubles(wanted));
  }
}

/// Carried from one iteration to the next, with a constant of the body, and chosen by a branch.
TEST(Packed, loops_carry_and_branches_give_them) {
  for (const auto type : kPacked) {
    SCOPED_TRACE(name_of(type));
    const auto x = codes(type, {3, 3}), row = codes(type, {1, 3}, 5);
    Graph body;
    body.add_input("i", {ElementType::i64, Shape(std::vector<Dim>{})});
    const auto go_on = body.add_input("c", {ElementType::boolean, Shape(std::vector<Dim>{})});
    const auto state = body.add_input("x", {type, Shape{3, 3}});
    const auto longer = body.add(Concat{0}, {state, body.add_constant(row)});
    const auto turned = body.add(Slice{}, {longer, body.add_constant(ints({1})), body.add_constant(ints({4})),
                                           body.add_constant(ints({1}))});
    body.add_result("c", go_on);
    body.add_result("x", turned);
    Loop loop;
    loop.carried = 1;
    Graph g, yes, no;
    const auto input = g.add_input("x", {type, Shape{3, 3}});
    const auto condition = g.add_input("b", {ElementType::boolean, Shape(std::vector<Dim>{})});
    const auto twice = g.add_constant(Tensor::scalar<std::int64_t>(2));
    const auto looped = g.node(g.add_node(loop, {twice, {}, input}, "loop", 1, {body})).outputs[0];
    const auto taken = yes.add_input("x", {type, Shape{3, 3}}), left = no.add_input("x", {type, Shape{3, 3}});
    yes.add_result("y", taken);
    no.add_result("y", no.add(Transpose{}, {left, no.add_constant(ints({1, 0}))}));
    const auto chosen = g.node(g.add_node(If{}, {condition, looped}, "if", 1, {yes, no})).outputs[0];
    g.add_result("y", chosen);
    const auto numbers = to_doubles(convert(x, ElementType::f32)),
               last = to_doubles(convert(row, ElementType::f32));
    std::vector<double> wanted(numbers.begin() + 6, numbers.end());
    for (int i = 0; i < 2; ++i) wanted.insert(wanted.end(), last.begin(), last.end());
    auto transposed = wanted;
    for (std::size_t i = 0; i < 9; ++i) transposed[i] = wanted[i % 3 * 3 + i / 3];
    for (const bool b : {true, false})
      expect_values(interpret(g, {x, of_type(ElementType::boolean, {}, {b})})[0], {3, 3},
                    b ? wanted : transposed);
  }
}

}  // namespace
}  // namespace lamina::testing
