#include "ops/multiclass.h"

#include "tests/ops/op_testing.h"

namespace lamina::testing {
namespace {

/// Two boxes of which the second has 0.75 of the first, and one beside them.
Tensor three_boxes() { return floats({1, 3, 4}, {0, 0, 1, 1, 0, 0, 1, 0.75f, 2, 2, 3, 3}); }
Tensor scores_of_two() { return floats({1, 2, 3}, {0.5f, 0.75f, 0.625f, 0.125f, 0.875f, 0.25f}); }

template <class Op>
Op over(double threshold) {
  Op op;
  op.score_threshold = threshold;
  return op;
}

TEST(MulticlassNms, keeps_the_best_of_each_class) {
  auto op = over<MulticlassNms>(0.25);
  op.iou_threshold = 0.5;
  const auto out = evaluate_all(op, {three_boxes(), scores_of_two()}, 3);
  expect_values(out[0], {4, 6},
                {1, 0.875, 0, 0, 1, 0.75, 0, 0.75, 0, 0, 1, 0.75, 0, 0.625, 2, 2, 3, 3, 1, 0.25, 2, 2, 3, 3});
  expect_values(out[1], {4, 1}, {1, 1, 2, 2});
  expect_values(out[2], {1}, {4});
  op.iou_threshold = 0.8;
  op.background_class = 1;
  op.keep_top_k = 2;
  op.output_type = ElementType::i32;
  const auto few = evaluate_all(op, {three_boxes(), scores_of_two()}, 3);
  expect_values(few[1], {2, 1}, {1, 2});
  EXPECT_EQ(few[2].element_type(), ElementType::i32);
}

TEST(MulticlassNms, sorts_by_class) {
  auto op = over<MulticlassNms>(0.5);
  op.iou_threshold = 1;
  op.sort_result_type = SortedBy::classid;
  const auto out = evaluate_all(op, {three_boxes(), scores_of_two()}, 3);
  expect_values(out[1], {4, 1}, {1, 2, 0, 1});
}

TEST(MulticlassNms, has_boxes_of_each_class) {
  auto op = over<MulticlassNms>(0.1);
  const auto boxes = floats({2, 2, 4}, {0, 0, 1, 1, 0, 0, 2, 2, 0, 0, 3, 3, 0, 0, 4, 4});
  const auto scores = floats({2, 2}, {0.5f, 0.75f, 0.625f, 0});
  const auto out = evaluate_all(op, {boxes, scores, ints({1, 1, 0})}, 3);
  expect_values(out[0], {3, 6}, {1, 0.625, 0, 0, 3, 3, 0, 0.5, 0, 0, 1, 1, 0, 0.75, 0, 0, 2, 2});
  expect_values(out[1], {3, 1}, {1, 0, 2});
  expect_values(out[2], {3}, {2, 1, 0});
  EXPECT_ERROR(evaluate(op, {boxes, scores, ints({1, 2})}), "an image has 2 boxes, 1 are left");
  EXPECT_ERROR(evaluate(op, {boxes, scores, ints({-1, 2})}), "an image has -1 boxes");
}

TEST(MatrixNms, lowers_scores) {
  auto op = over<MatrixNms>(0.25);
  op.post_threshold = 0.125;
  const auto out = evaluate_all(op, {three_boxes(), scores_of_two()}, 3);
  // the larger box has a quarter of its score left, which is the threshold; a score must be more
  expect_values(out[0], {3, 6}, {1, 0.875, 0, 0, 1, 0.75, 0, 0.75, 0, 0, 1, 0.75, 0, 0.625, 2, 2, 3, 3});
  expect_values(out[1], {3, 1}, {1, 1, 2});
  op.post_threshold = 0.1;
  const auto more = evaluate_all(op, {three_boxes(), scores_of_two()}, 3);
  expect_values(more[1], {4, 1}, {1, 1, 2, 0});
  EXPECT_NEAR(to_doubles(more[0])[19], 0.125, 1e-6);
  op.decay_function = DecayFunction::gaussian;
  op.gaussian_sigma = 0.5;
  const auto soft = evaluate_all(op, {three_boxes(), scores_of_two()}, 3);
  EXPECT_NEAR(to_doubles(soft[0])[19], 0.5 * std::exp(-0.5 * 0.5625), 1e-6);
}

TEST(MatrixNms, finds_nothing) {
  const auto out = evaluate_all(over<MatrixNms>(1), {three_boxes(), scores_of_two()}, 3);
  expect_values(out[0], {0, 6}, {});
  expect_values(out[1], {0, 1}, {});
  expect_values(out[2], {1}, {0});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto none = evaluate_all(MulticlassNms{}, {three_boxes(), floats({1, 1, 3}, {nan, nan, -1})}, 3);
  expect_values(none[0], {0, 6}, {});
}

TEST(ClassSuppression, bounds_its_rows) {
  MatrixNms op;
  op.nms_top_k = 2;
  const auto rows = [&](std::vector<Known> inputs) { return infer_all(op, inputs, 3).at(0).shape[0]; };
  EXPECT_EQ(rows({f32({2, 5, 4}), f32({2, 3, 5})}).high(), 12);
  op.keep_top_k = 4;
  EXPECT_EQ(rows({f32({2, 5, 4}), f32({2, 3, 5})}).high(), 8);
  EXPECT_EQ(rows({f32({2, dim("B"), 4}), f32({2, dim("C"), dim("B")})}).high(), 8);
  EXPECT_EQ(rows({f32(Shape()), f32(Shape())}).high(), Dim::kUnbounded);
  const auto types = infer_all(op, {f32({dim("N"), 5, 4}), f32({dim("N"), 3, 5})}, 3);
  EXPECT_EQ(to_string(types[2]), "i64[N]");
}

TEST(ClassSuppression, refuses) {
  const auto refuse = [](auto op, const std::vector<Known>& inputs, const char* why) {
    EXPECT_ERROR(infer_all(op, inputs, 3), why);
  };
  const std::vector<Known> fine{f32({1, 3, 4}), f32({1, 2, 3})};
  MulticlassNms op;
  op.nms_eta = 2;
  refuse(op, fine, "nms_eta is 2");
  op = {};
  op.keep_top_k = -2;
  refuse(op, fine, "keep_top_k is -2");
  op = {};
  op.output_type = ElementType::f32;
  refuse(op, fine, "output_type is f32");
  refuse(MatrixNms{}, {f32({1, 3, 5}), f32({1, 2, 3})}, "wanted 4 coordinates");
  refuse(MatrixNms{}, {f32({1, 3, 4}), f32({1, 2, 4})}, "do not fit");
  refuse(MulticlassNms{}, {f32({2, 3, 4}), f32({2, 4}), TensorType{ElementType::i64, {1}}}, "do not fit");
  refuse(MulticlassNms{}, {f32({2, 3, 4}), f32({2, 3}), f32({1})}, "wanted integers");
}

}  // namespace
}  // namespace lamina::testing
