#include "ops/movement.h"

#include "op_testing.h"
#include "ops/slicing.h"

namespace lamina::testing {
namespace {

TEST(Concat, Joins) {
  const Tensor a = counting({2, 1}), b = floats({2, 2}, {5, 6, 7, 8});
  expect_values(evaluate(Concat{.axis = 1}, {a, b}), {2, 3}, {0, 5, 6, 1, 7, 8});
  expect_values(evaluate(Concat{.axis = -2}, {b, b}), {4, 2}, {5, 6, 7, 8, 5, 6, 7, 8});
  expect_values(evaluate(Concat{}, {ints({1}), Tensor::of<std::int64_t>({0}, Ints{}), ints({2})}), {2},
                {1, 2});
}

TEST(Concat, Infers) {
  const auto n = dim("N"), h = dim("H");
  EXPECT_EQ(infer(Concat{.axis = 1}, {f32({n, 3, h}), f32({n, 4, h})}), "f32[N,7,H]");
  EXPECT_EQ(infer(Concat{.axis = 1}, {f32({n, 3, Dim()}), f32({Dim(), 4, 5})}), "f32[N,7,5]");
  EXPECT_EQ(infer(Concat{.axis = 0}, {f32({n, 3}), f32({h, Dim()})}), "f32[?,3]");
  EXPECT_EQ(infer(Concat{.axis = 0}, {f32({n, 3})}), "f32[N,3]");
  EXPECT_EQ(infer(Concat{.axis = 0}, {f32(Shape()), f32({2, 3})}), "f32[2..,3]");
  EXPECT_EQ(infer(Concat{.axis = 0}, {f32(Shape()), f32(Shape())}), "f32[...]");
  EXPECT_ERROR(infer(Concat{.axis = 1}, {f32({2, 3}), f32({3, 3})}), "differs");
  EXPECT_ERROR(infer(Concat{.axis = 1}, {f32({2, 3}), f32({2})}), "wanted rank 2");
  EXPECT_ERROR(infer(Concat{.axis = 2}, {f32({2, 3}), f32({2, 3})}), "axis is 2");
  EXPECT_ERROR(infer(Concat{.axis = 0}, {f32({2}), ints({1})}), "is i64");
  EXPECT_ERROR(infer(Concat{.axis = 0}, {f32(Shape(std::vector<Dim>{}))}), "axis is 0");
}

std::string joined(const std::vector<TensorType>& types) {
  std::string out;
  for (const auto& t : types) out += to_string(t) + " ";
  return out;
}

TEST(Split, CutsEvenly) {
  const auto parts =
      evaluate_all(Split{.num_splits = 2}, {counting({2, 4}), Tensor::scalar<std::int64_t>(1)}, 2);
  expect_values(parts[0], {2, 2}, {0, 1, 4, 5});
  expect_values(parts[1], {2, 2}, {2, 3, 6, 7});
  const Tensor one = Tensor::scalar<std::int64_t>(1);
  EXPECT_EQ(joined(infer_all(Split{.num_splits = 2}, {f32({dim("N"), 6}), one}, 2)), "f32[N,3] f32[N,3] ");
  EXPECT_EQ(joined(infer_all(Split{.num_splits = 1}, {f32({2, dim("N")}), one}, 1)), "f32[2,N] ");
  EXPECT_EQ(
      joined(infer_all(Split{.num_splits = 1}, {f32({2, 3}), TensorType{ElementType::i64, Shape()}}, 1)),
      "f32[?,?] ");
  EXPECT_ERROR(infer_all(Split{.num_splits = 2}, {f32({2, 3}), one}, 2), "2 equal parts");
  EXPECT_ERROR(infer_all(Split{.num_splits = 3}, {f32({2, 3}), one}, 2), "with 2 outputs");
  EXPECT_ERROR(infer_all(Split{.num_splits = 1}, {f32({2}), one}, 1), "axis is 1");
  EXPECT_ERROR(infer_all(Split{.num_splits = 1}, {f32({2}), ints({0, 0})}, 1), "wanted 1");
}

TEST(VariadicSplit, CutsByLengths) {
  const Tensor last = ints({-1});
  const auto parts = evaluate_all(VariadicSplit{}, {counting({2, 4}), last, ints({1, -1, 0})}, 3);
  expect_values(parts[0], {2, 1}, {0, 4});
  expect_values(parts[1], {2, 3}, {1, 2, 3, 5, 6, 7});
  expect_values(parts[2], {2, 0}, {});
  EXPECT_EQ(joined(infer_all(VariadicSplit{}, {f32({4, dim("N")}), last, ints({2, -1})}, 2)),
            "f32[4,2] f32[4,?] ");
  EXPECT_EQ(joined(infer_all(VariadicSplit{}, {f32({4, dim("N")}), last, ints({-1})}, 1)), "f32[4,N] ");
  EXPECT_EQ(joined(infer_all(VariadicSplit{}, {f32({4, 5}), last, TensorType{ElementType::i64, {2}}}, 2)),
            "f32[4,?] f32[4,?] ");
  EXPECT_ERROR(infer_all(VariadicSplit{}, {f32({4, 5}), last, ints({2, 2})}, 2), "add up to 4");
  EXPECT_ERROR(infer_all(VariadicSplit{}, {f32({4, 5}), last, ints({6, -1})}, 2), "add up to 6");
  EXPECT_ERROR(infer_all(VariadicSplit{}, {f32({4, 5}), last, ints({-1, -1})}, 2), "more than one -1");
  EXPECT_ERROR(infer_all(VariadicSplit{}, {f32({4, 5}), last, ints({-2, 7})}, 2), "lengths has -2");
  EXPECT_ERROR(infer_all(VariadicSplit{}, {f32({4, 5}), last, ints({5})}, 2), "2 outputs");
}

Tensor slice(const Tensor& x, Ints start, Ints stop, Ints step, Ints axes) {
  return evaluate(Slice{}, {x, ints(start), ints(stop), ints(step), ints(axes)});
}

TEST(Slice, TakesEveryStep) {
  const Tensor x = counting({10});
  expect_values(slice(x, {2}, {5}, {1}, {0}), {3}, {2, 3, 4});
  expect_values(slice(x, {-3}, {INT64_MAX}, {2}, {0}), {2}, {7, 9});
  expect_values(slice(x, {8}, {2}, {-3}, {0}), {2}, {8, 5});
  expect_values(slice(x, {INT64_MAX}, {INT64_MIN}, {-4}, {-1}), {3}, {9, 5, 1});
  expect_values(slice(x, {5}, {2}, {1}, {0}), {0}, {});
  expect_values(slice(x, {0}, {10}, {INT64_MAX}, {0}), {1}, {0});
  expect_values(slice(x, {9}, {INT64_MIN}, {INT64_MIN}, {0}), {1}, {9});
  expect_values(slice(counting({2, 3}), {1, 0}, {3, 1}, {1, 1}, {1, 0}), {1, 2}, {1, 2});
  expect_values(evaluate(Slice{}, {counting({2, 3}), ints({1}), ints({2}), ints({1})}), {1, 3}, {3, 4, 5});
}

TEST(Slice, Infers) {
  const auto n = dim("N"), bounded = dim("B", 4, 20);
  const auto along = [](Dim d, std::int64_t start, std::int64_t stop, std::int64_t step) {
    return infer(Slice{}, {f32({d, 7}), ints({start}), ints({stop}), ints({step}), ints({0})});
  };
  EXPECT_EQ(along(10, 1, -1, 2), "f32[4,7]");
  EXPECT_EQ(along(n, 0, INT64_MAX, 1), "f32[N,7]");
  EXPECT_EQ(along(n, 0, INT32_MAX, 1), "f32[N,7]");
  EXPECT_EQ(along(n, -1, INT64_MIN, -1), "f32[N,7]");
  EXPECT_EQ(along(n, 1, INT64_MAX, 1), "f32[?,7]");
  EXPECT_EQ(along(n, 0, 5, 1), "f32[0..5,7]");
  EXPECT_EQ(along(n, -2, INT32_MAX, 1), "f32[0..2,7]");
  EXPECT_EQ(along(n, 0, -1, 1), "f32[?,7]");
  EXPECT_EQ(along(bounded, 0, 3, 1), "f32[3,7]");
  EXPECT_EQ(along(bounded, 0, 10, 1), "f32[4..10,7]");
  EXPECT_EQ(along(bounded, -3, INT64_MAX, 1), "f32[3,7]");
  EXPECT_EQ(along(bounded, 1, -1, 1), "f32[2..18,7]");
  EXPECT_EQ(along(bounded, 0, INT64_MAX, 2), "f32[2..10,7]");
  EXPECT_EQ(along(bounded, -5, 6, 1), "f32[0..20,7]");
  EXPECT_EQ(along(bounded, 2, INT64_MIN, -1), "f32[3,7]");
}

TEST(Slice, KeepsNamesOfSymbolicBounds) {
  const auto sliced_by = [](Dim size, Dim stop, Dim start = 0) {
    return to_string(sliced(size, &start, &stop, 1));
  };
  const auto n = dim("N");
  EXPECT_EQ(sliced_by(n, n), "N");
  EXPECT_EQ(sliced_by(100, dim("M", 0, 50)), "M:0..50");
  EXPECT_EQ(sliced_by(100, n), "0..100");
  EXPECT_EQ(sliced_by(n, Dim(INT64_MIN, INT64_MAX)), "?");
  EXPECT_EQ(to_string(sliced(7, nullptr, nullptr, std::nullopt)), "0..7");
}

/// The bounds of an inferred count hold for every size.
TEST(Slice, InferredBoundsHold) {
  const Ints bounds{INT64_MIN, -100, -5, -3, -1, 0, 1, 2, 4, 100, INT32_MAX, INT64_MAX};
  for (auto start : bounds)
    for (auto stop : bounds)
      for (std::int64_t step : {-3, -1, 1, 2})
        for (std::int64_t low = 0; low < 8; ++low)
          for (std::int64_t high : {low + 1, low + 4, Dim::kUnbounded}) {
            const Dim from(start), to(stop), d = sliced(Dim(low, high), &from, &to, step);
            for (std::int64_t size = low; size <= std::min<std::int64_t>(high, low + 9); ++size) {
              const auto count = slice_range(size, start, stop, step).count;
              ASSERT_TRUE(d.fits(count))
                  << size << " of " << to_string(Dim(low, high)) << " from " << start << " to " << stop
                  << " by " << step << ": " << count << " is not in " << to_string(d);
            }
          }
}

TEST(Slice, RefusesWrongInputs) {
  const auto x = f32({4, 4});
  const Tensor one = ints({1});
  EXPECT_ERROR(infer(Slice{}, {x, one, one, ints({0})}), "step 0 is 0");
  EXPECT_ERROR(infer(Slice{}, {x, one, ints({1, 2}), one}), "stop has 2 elements");
  EXPECT_ERROR(infer(Slice{}, {x, one, one, one, ints({2})}), "axes is 2");
  EXPECT_ERROR(infer(Slice{}, {x, ints({0, 0}), ints({1, 1}), ints({1, 1}), ints({1, -1})}), "twice");
  EXPECT_ERROR(infer(Slice{}, {x, ints({0, 0, 0}), ints({1, 1, 1}), ints({1, 1, 1})}), "rank 2");
  EXPECT_ERROR(infer(Slice{}, {x, floats({1}), one, one}), "wanted integers");
}

TEST(SliceScatter, ReplacesWhatSliceTakes) {
  const auto x = counting({3, 4});
  const auto updates = floats({2, 2}, {-1, -2, -3, -4});
  expect_values(evaluate(SliceScatter{}, {x, updates, ints({0, 3}), ints({3, -5}), ints({2, -2})}), {3, 4},
                {0, -2, 2, -1, 4, 5, 6, 7, 8, -4, 10, -3});
  const std::vector<Tensor> rows{ints({1}), ints({9}), ints({1}), ints({-1})};
  const auto cut = floats({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const auto y = evaluate(SliceScatter{}, {x, cut, rows[0], rows[1], rows[2], rows[3]});
  EXPECT_EQ(to_floats(evaluate(Slice{}, {y, rows[0], rows[1], rows[2], rows[3]})), to_floats(cut));
  EXPECT_EQ(to_floats(evaluate(Slice{}, {y, ints({0}), ints({1}), ints({1}), ints({1})})),
            (std::vector<float>{0, 4, 8}));
  // nothing is taken
  EXPECT_EQ(to_floats(evaluate(SliceScatter{}, {x, floats({0, 4}, {}), ints({2}), ints({1}), ints({1})})),
            to_floats(x));
}

TEST(SliceScatter, WantsUpdatesThatFit) {
  const auto at = [](const Known& x, const Known& updates) {
    return infer(SliceScatter{}, {x, updates, ints({0}), ints({2}), ints({1})});
  };
  EXPECT_EQ(at(f32({dim("N"), 4}), f32({2, 4})), "f32[N,4]");
  EXPECT_ERROR(at(f32({3, 4}), f32({3, 4})), "updates has shape [3,4], wanted [2,4]");
  EXPECT_ERROR(at(f32({3, 4}), TensorType{ElementType::i32, {2, 4}}), "updates is i32, wanted f32");
  EXPECT_ERROR(infer(SliceScatter{}, {f32({3}), f32({3}), ints({0}), ints({3}), ints({0})}), "step 0 is 0");
}

TEST(StridedSlice, Masks) {
  const Tensor x = counting({2, 3, 4});
  const auto strided = [&](StridedSlice s, Ints begin, Ints end, Ints strides) {
    return evaluate(s, {x, ints(begin), ints(end), ints(strides)});
  };
  expect_values(strided({}, {1, 0, 1}, {2, 2, 3}, {1, 1, 1}), {1, 2, 2}, {13, 14, 17, 18});
  expect_values(strided({.begin_mask = {1}, .end_mask = {1}}, {5}, {5}, {1}), {2, 3, 4}, to_doubles(x));
  expect_values(strided({.shrink_axis_mask = {1, 1}}, {1, -1}, {0, 0}, {1, 1}), {4}, {20, 21, 22, 23});
  expect_values(strided({.begin_mask = {1, 1}, .shrink_axis_mask = {1, 1}}, {1, -1}, {0, 0}, {1, 1}), {4},
                {20, 21, 22, 23});
  expect_values(strided({.new_axis_mask = {1}, .shrink_axis_mask = {0, 1, 1, 1}}, {0, 1, 1, 1}, {0, 0, 0, 0},
                        {1, 1, 1, 1}),
                {1}, {17});
  expect_values(strided({.ellipsis_mask = {1, 0}}, {0, 3}, {0, 4}, {1, 1}), {2, 3, 1},
                {3, 7, 11, 15, 19, 23});
  expect_values(strided({.begin_mask = {1, 1, 1}, .end_mask = {1, 1, 1}}, {0, 0, 0}, {0, 0, 0}, {2, 2, -3}),
                {1, 2, 2}, {3, 0, 11, 8});
  expect_values(evaluate(StridedSlice{}, {counting({4}), ints({1}), ints({3})}), {2}, {1, 2});
}

TEST(StridedSlice, Infers) {
  const auto n = dim("N");
  const auto x = f32({n, 3, 8});
  const Tensor zero = ints({0}), one = ints({1});
  EXPECT_EQ(infer(StridedSlice{.begin_mask = {1}, .end_mask = {1}}, {x, zero, zero, one}), "f32[N,3,8]");
  EXPECT_EQ(infer(StridedSlice{.shrink_axis_mask = {1}}, {x, zero, one, one}), "f32[3,8]");
  EXPECT_EQ(infer(StridedSlice{.new_axis_mask = {1}}, {x, zero, one, one}), "f32[1,N,3,8]");
  EXPECT_EQ(infer(StridedSlice{.ellipsis_mask = {1}}, {x, ints({0, 2}), ints({0, 6}), ints({1, 2})}),
            "f32[N,3,2]");
  EXPECT_EQ(infer(StridedSlice{.end_mask = {0, 1}}, {x, TensorType{ElementType::i64, {2}}, ints({4, 0})}),
            "f32[?,0..3,8]");
  EXPECT_EQ(infer(StridedSlice{}, {f32(Shape()), zero, one}), "f32[...]");
  EXPECT_ERROR(infer(StridedSlice{}, {x, zero, one, zero}), "step 0 is 0");
  EXPECT_ERROR(infer(StridedSlice{}, {x, ints({0, 0, 0, 0}), ints({1, 1, 1, 1})}), "speaks of 4 dimensions");
  EXPECT_ERROR(infer(StridedSlice{.ellipsis_mask = {1, 1}}, {x, ints({0, 0}), ints({1, 1})}), "at most 1");
  EXPECT_ERROR(infer(StridedSlice{.shrink_axis_mask = {0, 1}}, {x, ints({0, 3}), ints({1, 4})}),
               "takes element 3");
  EXPECT_ERROR(infer(StridedSlice{}, {x, zero, ints({1, 2})}), "end has 2 elements");
}

TEST(Pad, Modes) {
  const Tensor x = floats({1, 2, 3}), two = ints({2});
  const auto padded = [&](PadMode mode, std::int64_t begin, std::int64_t end) {
    return evaluate(Pad{.pad_mode = mode}, {x, ints({begin}), ints({end})});
  };
  expect_values(padded(PadMode::constant, 1, 2), {6}, {0, 1, 2, 3, 0, 0});
  expect_values(evaluate(Pad{}, {x, two, two, Tensor::scalar(9.0f)}), {7}, {9, 9, 1, 2, 3, 9, 9});
  expect_values(padded(PadMode::edge, 2, 2), {7}, {1, 1, 1, 2, 3, 3, 3});
  expect_values(padded(PadMode::reflect, 2, 2), {7}, {3, 2, 1, 2, 3, 2, 1});
  expect_values(padded(PadMode::symmetric, 3, 2), {8}, {3, 2, 1, 1, 2, 3, 3, 2});
  expect_values(padded(PadMode::wrap, 2, 4), {9}, {2, 3, 1, 2, 3, 1, 2, 3, 1});
  expect_values(padded(PadMode::constant, -1, 1), {3}, {2, 3, 0});
  expect_values(padded(PadMode::edge, -1, -1), {1}, {2});
  expect_values(padded(PadMode::constant, -2, -1), {0}, {});
  expect_values(evaluate(Pad{}, {counting({2, 2}), ints({0, 1}), ints({1, 0})}), {3, 3},
                {0, 0, 1, 0, 2, 3, 0, 0, 0});
  expect_values(evaluate(Pad{}, {Tensor::scalar(5.0f), Tensor::of<std::int64_t>({0}, Ints{}),
                                 Tensor::of<std::int64_t>({0}, Ints{})}),
                {}, {5});
}

TEST(Pad, Infers) {
  const auto n = dim("N");
  const auto x = f32({n, 3});
  EXPECT_EQ(infer(Pad{}, {x, ints({0, 1}), ints({0, 1})}), "f32[N,5]");
  EXPECT_EQ(infer(Pad{}, {x, ints({1, 0}), ints({-1, 0})}), "f32[N,3]");
  EXPECT_EQ(infer(Pad{}, {x, ints({1, 0}), ints({1, 0})}), "f32[2..,3]");
  EXPECT_EQ(infer(Pad{}, {x, TensorType{ElementType::i64, {2}}, ints({1, 0})}), "f32[?,?]");
  EXPECT_ERROR(infer(Pad{}, {x, ints({0}), ints({0})}), "rank 2");
  EXPECT_ERROR(infer(Pad{}, {x, ints({0, 0}), ints({0})}), "pads_end 1");
  EXPECT_ERROR(infer(Pad{}, {x, ints({0, -2}), ints({0, -2})}), "cropped");
  EXPECT_ERROR(infer(Pad{}, {x, ints({0, INT64_MAX}), ints({0, 1})}), "2^40");
  EXPECT_ERROR(infer(Pad{}, {x, ints({0, 0}), ints({0, 1}), ints({1})}), "pad value is i64");
  EXPECT_ERROR(infer(Pad{}, {x, ints({0, 0}), ints({0, 1}), f32({2})}), "wanted one element");
  EXPECT_ERROR(infer(Pad{.pad_mode = PadMode::reflect}, {x, ints({0, 3}), ints({0, 0})}), "at most 2");
  EXPECT_ERROR(infer(Pad{.pad_mode = PadMode::symmetric}, {x, ints({0, 4}), ints({0, 0})}), "at most 3");
  EXPECT_ERROR(infer(Pad{.pad_mode = PadMode::edge}, {f32({0}), ints({1}), ints({0})}), "no elements");
}

TEST(Roll, MovesAround) {
  const Tensor x = counting({2, 3});
  expect_values(evaluate(Roll{}, {x, ints({1}), ints({1})}), {2, 3}, {2, 0, 1, 5, 3, 4});
  expect_values(evaluate(Roll{}, {x, ints({-1, 1}), ints({-1, 0})}), {2, 3}, {4, 5, 3, 1, 2, 0});
  expect_values(evaluate(Roll{}, {x, ints({2, 2}), ints({1, 1})}), {2, 3}, {2, 0, 1, 5, 3, 4});
  expect_values(evaluate(Roll{}, {x, Tensor::scalar(INT64_MIN), ints({0})}), {2, 3}, {0, 1, 2, 3, 4, 5});
  EXPECT_ERROR(infer(Roll{}, {f32({2, 3}), ints({1}), ints({2})}), "axes is 2");
  EXPECT_ERROR(infer(Roll{}, {f32({2, 3}), ints({1, 2, 3}), ints({0, 1})}), "shift has 3");
}

TEST(ReverseSequence, ReversesTheBeginning) {
  const Tensor x = counting({2, 3});
  expect_values(evaluate(ReverseSequence{}, {x, ints({2, 3})}), {2, 3}, {1, 0, 2, 5, 4, 3});
  expect_values(evaluate(ReverseSequence{.batch_axis = 1, .seq_axis = 0}, {x, ints({1, 2, 9})}), {2, 3},
                {0, 4, 5, 3, 1, 2});
  EXPECT_ERROR(infer(ReverseSequence{}, {f32({2, 3}), ints({1, 2, 3})}), "the batch 2");
  EXPECT_ERROR(infer(ReverseSequence{.seq_axis = -2}, {f32({2, 3}), ints({1, 2})}), "both 0");
  EXPECT_ERROR(infer(ReverseSequence{.seq_axis = 2}, {f32({2, 3}), ints({1, 2})}), "seq_axis is 2");
}

TEST(Identity, GivesTheInput) {
  expect_values(evaluate(Identity{}, {counting({2})}), {2}, {0, 1});
  EXPECT_EQ(infer(Identity{}, {f32({dim("N")})}), "f32[N]");
}

}  // namespace
}  // namespace lamina::testing
