/// What the families of ai.onnx.ml share.
#include "formats/onnx/ml/ml.h"

#include <array>
#include <cmath>
#include <numbers>

#include "formats/onnx/build.h"
#include "formats/onnx/convert.h"
#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/gathering.h"
#include "ops/reduction.h"

namespace lamina::onnx {
namespace {

/// exp(x - most) / sum, where scores of 0 stay 0; rows of nothing but 0 are 0.5.
ValueId softmax_zero(Call& c, ValueId x) {
  const auto last = c.ints_constant({-1});
  const auto most = c.add(ReduceMax{{true}}, {x, last});
  const auto is_zero = c.add(LessEqual{}, {c.add(Abs{}, {x}), c.number_like(1e-7f, x)});
  const auto scaled = multiply(c, x, c.add(Exp{}, {negated(c, most)}));
  const auto e = c.add(Select{}, {is_zero, scaled, c.add(Exp{}, {subtract(c, x, most)})});
  const auto sum = c.add(ReduceSum{{true}}, {e, last});
  const auto is_empty = c.add(Equal{}, {sum, c.number_like(0, x)});
  return c.add(Select{}, {is_empty, c.number_like(0.5, x), divide(c, e, sum)});
}

/// The quantile of the normal distribution, by Winitzki's approximation of the inverse error function, as
/// other implementations of ai.onnx.ml have it.
ValueId probit(Call& c, ValueId score) {
  constexpr double kA = 0.147;
  const auto number = [&](double v) { return c.number_like(v, score); };
  const auto x = subtract(c, multiply(c, score, number(2)), number(1));
  const auto log = c.add(Log{}, {multiply(c, subtract(c, number(1), x), add(c, number(1), x))});
  const auto v = add(c, number(2 / (std::numbers::pi * kA)), multiply(c, log, number(0.5)));
  const auto root = c.add(Sqrt{}, {subtract(c, multiply(c, v, v), multiply(c, log, number(1 / kA)))});
  const auto size = multiply(c, c.add(Sqrt{}, {subtract(c, root, v)}), number(std::numbers::sqrt2));
  const auto is_below = c.add(Less{}, {x, number(0)});
  return c.add(Select{}, {is_below, negated(c, size), size});
}

}  // namespace

ValueId feature_rows(Call& c, std::size_t input, bool keep_double) {
  auto x = c.in(input);
  const auto element = c.known_element(x);
  if (element != ElementType::f32 && !(keep_double && element == ElementType::f64))
    x = c.convert(x, ElementType::f32);
  const auto rank = c.rank(x);
  if (rank == std::size_t{1}) return c.reshape(x, {1, -1});
  if (rank && *rank != 2) c.fail("input {} has rank {}, wanted rows of features: 2", input, *rank);
  return x;
}

PostTransform post_transform_of(const Call& c) {
  const auto name = c.s("post_transform", "NONE");
  if (name == "NONE") return PostTransform::none;
  if (name == "SOFTMAX") return PostTransform::softmax;
  if (name == "LOGISTIC") return PostTransform::logistic;
  if (name == "SOFTMAX_ZERO") return PostTransform::softmax_zero;
  if (name == "PROBIT") return PostTransform::probit;
  c.fail("post_transform is \"{}\", wanted NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT", name);
}

PostTransform post_transform_numbered(const Call& c, std::int64_t number) {
  if (number < 0 || number > 4) c.fail("post_transform is {}, wanted 0..4", number);
  return static_cast<PostTransform>(number);
}

ValueId post_transformed(Call& c, ValueId scores, PostTransform how) {
  switch (how) {
    case PostTransform::none:
      return scores;
    case PostTransform::softmax:
      return c.add(Softmax{-1}, {scores});
    case PostTransform::logistic:
      return c.add(Sigmoid{}, {scores});
    case PostTransform::softmax_zero:
      return softmax_zero(c, scores);
    case PostTransform::probit:
      return probit(c, scores);
  }
  return scores;
}

Ints class_labels(const Call& c, std::string_view integers, std::string_view texts) {
  auto labels = c.ints(integers);
  if (!labels.empty()) return labels;
  const auto* strings = c.find(texts);
  if (!strings || strings->strings.empty()) return labels;
  if (c.wants(0))
    c.unsupported(
        "its labels are texts: export integer labels, or leave the output of labels out of the model");
  for (std::size_t i = 0; i < strings->strings.size(); ++i) labels.push_back(static_cast<std::int64_t>(i));
  return labels;
}

ValueId best_labels(Call& c, ValueId scores, const Ints& labels) {
  const auto index = c.squeeze(arg_extreme(c, scores, 1, true), {1});
  bool are_counted = true;
  for (std::size_t i = 0; i < labels.size(); ++i) are_counted &= labels[i] == static_cast<std::int64_t>(i);
  if (are_counted) return index;
  return c.add(Gather{}, {c.ints_constant(labels), index, c.int_constant(0)});
}

ValueId chosen_labels(Call& c, ValueId is_second, std::int64_t first, std::int64_t second) {
  const auto flat = c.squeeze(is_second, {1});
  if (first == 0 && second == 1) return c.convert(flat, ElementType::i64);
  return c.add(Select{}, {flat, c.int_constant(second), c.int_constant(first)});
}

ValueId scores_of_two(Call& c, ValueId score, PostTransform how, bool is_probability) {
  if (how == PostTransform::logistic) return c.add(Sigmoid{}, {c.concat({negated(c, score), score}, 1)});
  if (how == PostTransform::probit) {
    const auto p = post_transformed(c, score, how);
    return c.concat({negated(c, p), p}, 1);
  }
  const auto first = is_probability ? subtract(c, c.number_like(1, score), score) : negated(c, score);
  return c.concat({first, score}, 1);
}

ValueId single_score(Call& c, ValueId score, PostTransform how) {
  if (how == PostTransform::probit) return post_transformed(c, score, how);
  if (how == PostTransform::logistic)
    c.warn(fmt::format(
        "{}: post_transform LOGISTIC leaves a single target's score as it is, as in ONNX Runtime", c.op()));
  return score;
}

ValueId negated(Call& c, ValueId v) { return c.add(Negative{}, {v}); }

ValueId floats_constant(Call& c, const Floats& values, ElementType type) {
  return c.constant(from_doubles(type, {std::ssize(values)}, values));
}

void register_ml(ConverterTable& t) {
  register_ml_features(t);
  register_ml_labels(t);
  register_ml_linear(t);
  register_ml_svm(t);
  register_ml_trees(t);
}

}  // namespace lamina::onnx
