#include "ops/ctc_loss.h"

#include "tests/ops/op_testing.h"

namespace lamina::testing::ctc_loss_test {
namespace {

TensorType i64(Shape shape) { return {ElementType::i64, std::move(shape)}; }
Tensor labels_of(Dims dims, const Ints& values) { return of_type(ElementType::i64, std::move(dims), values); }

/// The loss of labels in `times` times of two classes, each as likely as the other; class 1 is the blank.
double loss(const CTCLoss& op, std::int64_t times, Ints labels) {
  const auto count = std::ssize(labels);
  labels.resize(3, 0);
  const auto out = evaluate(
      op, {floats({1, 3, 2}, {2, 2, -1, -1, 0, 0}), ints({times}), labels_of({1, 3}, labels), ints({count})});
  return to_doubles(out)[0];
}

TEST(CTCLoss, adds_up_all_ways) {
  CTCLoss op;
  EXPECT_NEAR(loss(op, 2, {0}), -std::log(3.0 / 4), 1e-6);     // 0-, -0, 00
  EXPECT_NEAR(loss(op, 3, {0}), -std::log(6.0 / 8), 1e-6);     // not 0-0, ---
  EXPECT_NEAR(loss(op, 3, {0, 0}), -std::log(1.0 / 8), 1e-6);  // 0-0
  EXPECT_NEAR(loss(op, 3, {}), -std::log(1.0 / 8), 1e-6);      // ---
  EXPECT_EQ(loss(op, 2, {0, 0}), std::numeric_limits<double>::infinity());
  EXPECT_EQ(loss(op, 0, {}), 0);
  op.ctc_merge_repeated = false;
  EXPECT_NEAR(loss(op, 2, {0}), -std::log(2.0 / 4), 1e-6);     // 0-, -0
  EXPECT_NEAR(loss(op, 3, {0, 0}), -std::log(3.0 / 8), 1e-6);  // 00-, 0-0, -00
}

TEST(CTCLoss, may_shorten_labels) {
  CTCLoss op;
  op.preprocess_collapse_repeated = true;
  EXPECT_NEAR(loss(op, 2, {0, 0}), loss(op, 2, {0}), 1e-6);
  op = {};
  op.unique = true;
  const auto of = [&](const Ints& labels) {
    return to_doubles(
        evaluate(op, {counting({1, 3, 3}), ints({3}), labels_of({1, 3}, labels), ints({3})}))[0];
  };
  EXPECT_NEAR(of({0, 1, 0}), of({0, 1, 1}), 1e-6);
}

TEST(CTCLoss, has_a_blank) {
  const auto logits = floats({1, 1, 3}, {0, std::log(2.0f), 0});
  const auto of = [&](std::int64_t blank) {
    return to_doubles(
        evaluate(CTCLoss{}, {logits, ints({1}), labels_of({1, 1}, {0}), ints({0}), ints({blank})}))[0];
  };
  EXPECT_NEAR(of(1), std::log(2.0), 1e-6);
  EXPECT_NEAR(of(0), std::log(4.0), 1e-6);
}

TEST(CTCLoss, infers_its_batch) {
  const Shape batch{dim("N")};
  EXPECT_EQ(infer(CTCLoss{}, {f32({dim("N"), 4, 3}), i64(batch), i64({dim("N"), 4}), i64(batch)}), "f32[N]");
  EXPECT_EQ(infer(CTCLoss{}, {f32(Shape()), i64(Shape()), i64(Shape()), i64({2})}), "f32[2]");
}

TEST(CTCLoss, refuses) {
  const auto tried = [](std::vector<Known> changed, std::size_t at, Known value) {
    changed[at] = std::move(value);
    return infer(CTCLoss{}, changed);
  };
  const std::vector<Known> fine{f32({2, 4, 3}), i64({2}), i64({2, 4}), i64({2}), ints({2})};
  EXPECT_EQ(tried(fine, 4, ints({0})), "f32[2]");
  EXPECT_ERROR(tried(fine, 0, f32({2, 4})), "wanted rank 3");
  EXPECT_ERROR(tried(fine, 0, i64({2, 4, 3})), "wanted a float type");
  EXPECT_ERROR(tried(fine, 1, f32({2})), "wanted integers");
  EXPECT_ERROR(tried(fine, 3, i64({3})), "wanted a batch of 2");
  EXPECT_ERROR(tried(fine, 2, i64({2, 5})), "labels have shape [2,5]");
  EXPECT_ERROR(tried(fine, 4, ints({3})), "blank is 3");
  EXPECT_ERROR(tried(fine, 0, f32({2, 4, 0})), "wanted classes");
  EXPECT_ERROR(loss(CTCLoss{}, 4, {0}), "the length of a sequence is 4, wanted 0..3");
  EXPECT_ERROR(loss(CTCLoss{}, 1, {0, 0}), "the number of a sequence's labels is 2, wanted 0..1");
  EXPECT_ERROR(loss(CTCLoss{}, 2, {2}), "a label is 2, wanted 0..1");
}

}  // namespace
}  // namespace lamina::testing::ctc_loss_test
