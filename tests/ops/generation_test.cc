#include "ops/generation.h"

#include <algorithm>
#include <numbers>

#include "ops/repeated_draws.h"
#include "tests/ops/op_testing.h"

namespace lamina::testing {
namespace {

template <class T>
Tensor one(T v) {
  return Tensor::scalar<T>(v);
}

TEST(Range, counts_up_and_down) {
  expect_values(evaluate(Range{ElementType::i64}, {ints({2}), ints({9}), ints({3})}), {3}, {2, 5, 8});
  expect_values(evaluate(Range{ElementType::i32}, {one(3), one(-1), one(-2)}), {2}, {3, 1});
  expect_values(evaluate(Range{}, {one(0.0f), one(1.0f), one(0.25f)}), {4}, {0, 0.25, 0.5, 0.75});
  expect_values(evaluate(Range{ElementType::i64}, {ints({5}), ints({5}), ints({1})}), {0}, {});
}

TEST(Range, infers_and_refuses) {
  EXPECT_EQ(infer(Range{ElementType::i64}, {ints({0}), TensorType{ElementType::i64, {1}}, ints({1})}),
            "i64[?]");
  EXPECT_ERROR(infer(Range{ElementType::i64}, {ints({0}), ints({5}), ints({0})}), "has no end");
  EXPECT_ERROR(infer(Range{}, {one(0.0f), one(1.0f), one(0.0f)}), "has no end");
  EXPECT_ERROR(infer(Range{}, {one(0.0f), one(std::numeric_limits<float>::infinity()), one(1.0f)}),
               "has no end");
  EXPECT_ERROR(infer(Range{ElementType::i64}, {ints({INT64_MIN}), ints({INT64_MAX}), ints({1})}), "too long");
  EXPECT_ERROR(infer(Range{ElementType::boolean}, {ints({0}), ints({5}), ints({1})}),
               "output_type is boolean");
}

TEST(OneHot, places_the_new_axis) {
  const auto on = one(5.0f), off = one(-1.0f);
  expect_values(evaluate(OneHot{}, {ints({1, 2, -1}), one<std::int64_t>(2), on, off}), {3, 2},
                {-1, 5, -1, -1, -1, -1});
  expect_values(evaluate(OneHot{-1, NegativeIndices::normalize}, {ints({-1}), one<std::int64_t>(2), on, off}),
                {1, 2}, {-1, 5});
  expect_values(evaluate(OneHot{0}, {ints({1, 0}), one<std::int64_t>(2), on, off}), {2, 2}, {-1, 5, 5, -1});
  EXPECT_EQ(infer(OneHot{1}, {TensorType{ElementType::i64, {dim("N"), 3}}, one<std::int64_t>(7), on, off}),
            "f32[N,7,3]");
  EXPECT_ERROR(infer(OneHot{}, {TensorType{ElementType::i64, {3}}, one<std::int64_t>(-1), on, off}),
               "depth is -1");
  EXPECT_ERROR(infer(OneHot{3}, {TensorType{ElementType::i64, {3}}, one<std::int64_t>(1), on, off}),
               "axis is 3");
  EXPECT_ERROR(infer(OneHot{}, {TensorType{ElementType::i64, {3}}, one<std::int64_t>(1), on, one(0)}),
               "wanted the same");
}

TEST(CumSum, runs_both_ways) {
  const auto x = counting({2, 3});
  expect_values(evaluate(CumSum{}, {x, ints({1})}), {2, 3}, {0, 1, 3, 3, 7, 12});
  expect_values(evaluate(CumSum{true, false}, {x, ints({1})}), {2, 3}, {0, 0, 1, 0, 3, 7});
  expect_values(evaluate(CumSum{false, true}, {x, ints({0})}), {2, 3}, {3, 5, 7, 3, 4, 5});
  expect_values(evaluate(CumSum{true, true}, {x, ints({-1})}), {2, 3}, {3, 2, 0, 9, 5, 0});
  EXPECT_ERROR(infer(CumSum{}, {f32({2}), ints({1})}), "axis is 1");
}

TEST(CumProd, runs_both_ways) {
  const auto x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_values(evaluate(CumProd{}, {x, ints({1})}), {2, 3}, {1, 2, 6, 4, 20, 120});
  expect_values(evaluate(CumProd{true, false}, {x, ints({1})}), {2, 3}, {1, 1, 2, 1, 4, 20});
  expect_values(evaluate(CumProd{false, true}, {x, ints({0})}), {2, 3}, {4, 10, 18, 4, 5, 6});
  expect_values(evaluate(CumProd{true, true}, {x, ints({-1})}), {2, 3}, {6, 3, 1, 30, 6, 1});
  // Products of integers wrap.
  expect_values(
      evaluate(CumProd{}, {Tensor::of<std::int8_t>({3}, std::vector<std::int8_t>{100, 2, -1}), ints({0})}),
      {3}, {100, -56, 56});
  EXPECT_ERROR(infer(CumProd{}, {f32({2}), ints({1})}), "axis is 1");
}

TEST(Eye, shifts_the_diagonal) {
  expect_values(evaluate(Eye{}, {ints({2}), ints({3}), ints({1})}), {2, 3}, {0, 1, 0, 0, 0, 1});
  expect_values(evaluate(Eye{ElementType::i32}, {ints({2}), ints({2}), ints({-1}), ints({2})}), {2, 2, 2},
                {0, 0, 1, 0, 0, 0, 1, 0});
  expect_values(evaluate(Eye{}, {ints({2}), ints({2}), ints({INT64_MAX})}), {2, 2}, {0, 0, 0, 0});
  EXPECT_ERROR(infer(Eye{}, {ints({-2}), ints({3}), ints({0})}), "a size is -2");
}

TEST(Trilu, cuts_triangles) {
  const auto x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_values(evaluate(Trilu{}, {x}), {2, 3}, {1, 2, 3, 0, 5, 6});
  expect_values(evaluate(Trilu{false}, {x, one<std::int64_t>(1)}), {2, 3}, {1, 2, 0, 4, 5, 6});
  expect_values(evaluate(Trilu{}, {x, one<std::int64_t>(INT64_MIN)}), {2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_ERROR(infer(Trilu{}, {f32({2})}), "wanted at least rank 2");
}

TEST(Random, repeats_with_the_same_seeds) {
  const std::vector<Tensor> inputs{ints({1000}), one(-1.0f), one(3.0f)};
  const auto a = evaluate(RandomUniform{ElementType::f32, 1, 2}, inputs),
             b = evaluate(RandomUniform{ElementType::f32, 1, 2}, inputs);
  EXPECT_TRUE(a.same_as(b));
  EXPECT_FALSE(a.same_as(evaluate(RandomUniform{ElementType::f32, 2, 2}, inputs)));
  const auto values = to_doubles(a);
  EXPECT_GE(*std::min_element(values.begin(), values.end()), -1);
  EXPECT_LT(*std::max_element(values.begin(), values.end()), 3);
  double sum = 0;
  for (const double v :
       to_doubles(evaluate(RandomNormal{ElementType::f32, 7}, {ints({4000}), one(2.0f), one(0.5f)})))
    sum += v;
  EXPECT_NEAR(sum / 4000, 2, 0.05);
  EXPECT_ERROR(evaluate(RandomUniform{ElementType::i32}, {ints({1}), one(3), one(3)}), "wanted min < max");
  EXPECT_ERROR(infer(RandomUniform{}, {ints({-1}), one(0.0f), one(1.0f)}), "a size is -1");
}

/// The numbers of one stream are not those of another, moved by a place.
TEST(Random, streams_of_different_seeds_have_nothing_in_common) {
  const auto stream = [](std::int64_t global_seed, std::int64_t op_seed) {
    return to_doubles(
        evaluate(RandomUniform{ElementType::f32, global_seed, op_seed}, {ints({100}), one(0.0f), one(1.0f)}));
  };
  for (const std::int64_t op_seed : {0, 7}) {
    const auto a = stream(1, op_seed), b = stream(2, op_seed), c = stream(1, op_seed + 1);
    for (const auto& other : {b, c})
      for (const double v : a) EXPECT_EQ(std::count(other.begin(), other.end(), v), 0) << v;
  }
}

TEST(Random, differs_each_time_without_seeds) {
  const std::vector<Tensor> inputs{ints({64}), one(0.0f), one(1.0f)};
  for (const Op& op : {Op(RandomUniform{}), Op(RandomNormal{})}) {
    const auto a = evaluate(op, inputs), b = evaluate(op, inputs);
    EXPECT_FALSE(a.same_as(b)) << op.name();
    std::vector<Tensor> repeated;
    for (int i = 0; i < 2; ++i) {
      const RepeatedDraws outer, inner;
      repeated.push_back(evaluate(op, inputs));
    }
    EXPECT_TRUE(repeated[0].same_as(repeated[1])) << op.name();
    EXPECT_FALSE(evaluate(op, inputs).same_as(repeated[0])) << op.name();
  }
}

/// 20000 numbers of streams that begin one after another are as even as those of one stream.
TEST(Random, streams_without_seeds_have_nothing_in_common) {
  std::vector<double> first;
  double sum = 0, next_to = 0;
  for (int i = 0; i < 10000; ++i) {
    const auto pair = to_doubles(evaluate(RandomUniform{}, {ints({2}), one(-1.0f), one(1.0f)}));
    sum += pair[0] + pair[1];
    if (!first.empty()) next_to += pair[0] * first.back();
    first.push_back(pair[1]);
  }
  EXPECT_NEAR(sum / 20000, 0, 0.03);       // seven deviations
  EXPECT_NEAR(next_to / 10000, 0, 0.025);  // 1/3 if a stream went on with the numbers of the one before
}

TEST(Einsum, multiplies_matrices) {
  const auto a = counting({2, 3}), b = counting({3, 2});
  expect_values(evaluate(Einsum{"ij,jk->ik"}, {a, b}), {2, 2}, {10, 13, 28, 40});
  expect_values(evaluate(Einsum{"ij,jk"}, {a, b}), {2, 2}, {10, 13, 28, 40});
  expect_values(evaluate(Einsum{"ij->ji"}, {a}), {3, 2}, {0, 3, 1, 4, 2, 5});
  expect_values(evaluate(Einsum{"ij->"}, {a}), {}, {15});
  expect_values(evaluate(Einsum{"i,i,i->i"}, {floats({1, 2}), floats({3, 4}), floats({5, 6})}), {2},
                {15, 48});
  expect_values(evaluate(Einsum{"ij,jk,kl->il"}, {a, b, counting({2, 1})}), {2, 1}, {13, 40});
}

TEST(Einsum, knows_ellipses_and_diagonals) {
  expect_values(evaluate(Einsum{"ii->i"}, {counting({2, 2})}), {2}, {0, 3});
  expect_values(evaluate(Einsum{"ii"}, {counting({2, 2})}), {}, {3});
  expect_values(evaluate(Einsum{"...ij,...jk->...ik"}, {counting({2, 1, 2}), counting({2, 1})}), {2, 1, 1},
                {1, 3});
  expect_values(evaluate(Einsum{"... i -> ..."}, {counting({2, 2})}), {2}, {1, 5});
  EXPECT_EQ(to_ints(evaluate(Einsum{"i,i->"}, {ints({INT64_MAX, 1}), ints({1, -2})})), Ints{INT64_MAX - 2});
}

TEST(Einsum, refuses_what_does_not_fit) {
  EXPECT_EQ(infer(Einsum{"bij,bjk->bik"}, {f32({dim("B"), 2, 3}), f32({dim("B"), 3, 4})}), "f32[B,2,4]");
  EXPECT_ERROR(infer(Einsum{"ij,jk->ik"}, {f32({2, 3}), f32({2, 3})}), "of one letter differ");
  EXPECT_ERROR(infer(Einsum{"ij->ik"}, {f32({2, 3})}), "in no input");
  EXPECT_ERROR(infer(Einsum{"ij->ii"}, {f32({2, 3})}), "occurs twice");
  EXPECT_ERROR(infer(Einsum{"ijk->i"}, {f32({2, 3})}), "3 letters");
  EXPECT_ERROR(infer(Einsum{"i,i->i"}, {f32({2})}), "2 terms for 1 inputs");
  EXPECT_ERROR(infer(Einsum{"i;j"}, {f32({2})}), "wanted letters");
  EXPECT_ERROR(infer(Einsum{""}, {f32({2})}), "0 letters");
}

TEST(GridSample, interpolates) {
  const auto x = counting({1, 1, 2, 2});
  const auto grid = floats({1, 1, 3, 2}, {0, 0, -1, -1, 1, 0});
  GridSample op;
  op.align_corners = true;
  expect_values(evaluate(op, {x, grid}), {1, 1, 1, 3}, {1.5, 0, 2});
  op.align_corners = false;
  expect_values(evaluate(op, {x, grid}), {1, 1, 1, 3}, {1.5, 0, 1});  // half of the pixels lie outside
  op.padding_mode = SamplePadding::border;
  expect_values(evaluate(op, {x, grid}), {1, 1, 1, 3}, {1.5, 0, 2});
  op.padding_mode = SamplePadding::reflection;
  expect_values(evaluate(op, {x, grid}), {1, 1, 1, 3}, {1.5, 0, 2});
  op.mode = SampleMode::nearest;
  expect_values(evaluate(op, {x, floats({1, 1, 2, 2}, {0.6f, -0.6f, -0.6f, 0.6f})}), {1, 1, 1, 2}, {1, 2});
}

TEST(GridSample, is_exact_on_pixels_in_every_mode) {
  const auto x = counting({1, 2, 4, 4});
  for (const auto mode : {SampleMode::bilinear, SampleMode::bicubic, SampleMode::nearest}) {
    const GridSample op{true, mode, SamplePadding::border};
    expect_values(evaluate(op, {x, floats({1, 1, 2, 2}, {-1, -1, 1, 1})}), {1, 2, 1, 2}, {0, 15, 16, 31},
                  1e-5);
  }
}

TEST(GridSample, samples_volumes_and_survives_nan) {
  const auto x = counting({1, 1, 2, 2, 2});
  const GridSample op{true, SampleMode::bilinear, SamplePadding::zeros};
  expect_values(evaluate(op, {x, floats({1, 1, 1, 2, 3}, {1, -1, -1, 0, 0, 0})}), {1, 1, 1, 1, 2}, {1, 3.5});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const auto padding : {SamplePadding::zeros, SamplePadding::border, SamplePadding::reflection})
    for (const auto mode : {SampleMode::bilinear, SampleMode::nearest})
      EXPECT_NO_THROW(evaluate(GridSample{false, mode, padding},
                               {counting({1, 1, 2, 2}), floats({1, 1, 2, 2}, {nan, 1e30f, -1e30f, nan})}));
}

TEST(GridSample, infers_and_refuses) {
  EXPECT_EQ(infer(GridSample{}, {f32({dim("N"), 3, 8, 8}), f32({dim("N"), 4, dim("W"), 2})}), "f32[N,3,4,W]");
  EXPECT_ERROR(infer(GridSample{}, {f32({1, 3, 8, 8}), f32({1, 4, 4, 3})}), "do not fit");
  EXPECT_ERROR(infer(GridSample{}, {f32({1, 3, 0, 8}), f32({1, 4, 4, 2})}), "wanted pixels");
}

TEST(DFT, turns_and_turns_back) {
  const auto x = floats({4, 2}, {1, 0, 2, 0, 3, 0, 4, 0});
  const auto y = evaluate(DFT{}, {x, ints({0})});
  expect_values(y, {4, 2}, {10, 0, -2, 2, -2, 0, -2, -2}, 1e-6);
  expect_values(evaluate(IDFT{}, {y, ints({0})}), {4, 2}, {1, 0, 2, 0, 3, 0, 4, 0}, 1e-6);
  expect_values(evaluate(DFT{}, {x, ints({0}), ints({2})}), {2, 2}, {3, 0, -1, 0}, 1e-6);
  expect_values(evaluate(DFT{}, {floats({1, 2}, {5, 0}), ints({0}), ints({3})}), {3, 2}, {5, 0, 5, 0, 5, 0},
                1e-6);
}

TEST(DFT, turns_all_sizes_back) {
  for (const std::int64_t n : {1, 2, 3, 5, 6, 12, 15, 16}) {
    const auto x = counting({2, n, 2});
    const auto back = evaluate(IDFT{}, {evaluate(DFT{}, {x, ints({1, 0})}), ints({1, 0})});
    expect_values(back, {2, n, 2}, to_doubles(x), 1e-4);
    const auto real = counting({2, n});
    const auto real_back =
        evaluate(IRDFT{}, {evaluate(RDFT{}, {real, ints({0, 1})}), ints({0, 1}), ints({-1, n})});
    expect_values(real_back, {2, n}, to_doubles(real), 1e-4);
  }
}

TEST(RDFT, keeps_half) {
  expect_values(evaluate(RDFT{}, {floats({1, 2, 3, 4}), ints({0})}), {3, 2}, {10, 0, -2, 2, -2, 0}, 1e-6);
  expect_values(evaluate(IRDFT{}, {floats({3, 2}, {10, 0, -2, 2, -2, 0}), ints({0})}), {4}, {1, 2, 3, 4},
                1e-6);
  EXPECT_EQ(infer(RDFT{}, {f32({dim("N"), 16}), ints({1})}), "f32[N,9,2]");
  EXPECT_EQ(infer(IRDFT{}, {f32({dim("N"), 9, 2}), ints({1})}), "f32[N,16]");
  EXPECT_EQ(infer(DFT{}, {f32({dim("N"), 9, 2}), TensorType{ElementType::i64, {1}}}), "f32[?,?,?]");
  EXPECT_ERROR(infer(DFT{}, {f32({4, 3}), ints({0})}), "wanted pairs");
  EXPECT_ERROR(infer(DFT{}, {f32({4, 2}), ints({1})}), "axis is 1");
  EXPECT_ERROR(infer(DFT{}, {f32({4, 4, 2}), ints({1, -1})}), "is given twice");
  EXPECT_ERROR(infer(DFT{}, {f32({4, 2}), ints({0}), ints({0})}), "signal size is 0");
  EXPECT_ERROR(infer(DFT{}, {f32({4, 2}), ints({0}), ints({1, 2})}), "2 signal sizes for 1 axes");
}

TEST(STFT, cuts_frames) {
  const auto signal = floats({1, 5}, {1, 2, 3, 4, 5});
  const std::vector<Tensor> inputs{signal, floats({1, 1}), ints({2}), ints({2})};
  expect_values(evaluate(STFT{}, inputs), {1, 2, 2, 2}, {3, 0, -1, 0, 7, 0, -1, 0}, 1e-6);
  expect_values(evaluate(STFT{true}, inputs), {1, 2, 2, 2}, {3, 0, 7, 0, -1, 0, -1, 0}, 1e-6);
  EXPECT_EQ(infer(STFT{}, {f32({dim("N"), 100}), f32({16}), ints({16}), ints({4})}), "f32[N,22,9,2]");
  EXPECT_ERROR(infer(STFT{}, {f32({1, 5}), f32({3}), ints({2}), ints({2})}), "longer than the frame");
  EXPECT_ERROR(infer(STFT{}, {f32({1, 5}), f32({3}), ints({6}), ints({2})}), "shorter than the frame");
  EXPECT_ERROR(infer(STFT{}, {f32({1, 5}), f32({3}), ints({4}), ints({0})}), "frame step is 0");
}

}  // namespace
}  // namespace lamina::testing
