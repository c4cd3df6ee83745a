/// ai.onnx.ml: linear models.
#include <algorithm>

#include "formats/onnx/build.h"
#include "formats/onnx/ml/ml.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"

namespace lamina::onnx {
namespace {

/// x * coefficients^T + intercepts, for so many targets.
ValueId linear_scores(Call& c, ValueId x, std::int64_t targets) {
  const auto coefficients = c.floats("coefficients"), intercepts = c.floats("intercepts");
  const auto count = std::ssize(coefficients);
  if (targets < 1 || count == 0 || count % targets != 0)
    c.fail("{} coefficients for {} targets, wanted as many for each", count, targets);
  const auto& shape = c.shape(x);
  if (shape.ranked() && !shape[1].fits(count / targets))
    c.fail("{} coefficients for {} targets and features of {}", count, targets, to_string(shape));
  const auto weights = c.constant(from_doubles(ElementType::f32, {targets, count / targets}, coefficients));
  const auto y = c.add(MatMul{false, true}, {x, weights});
  if (intercepts.empty()) return y;
  if (std::ssize(intercepts) != targets) c.fail("{} intercepts for {} targets", intercepts.size(), targets);
  return add(c, y, floats_constant(c, intercepts));
}

Values convert_linear_regressor(Call& c) {
  const auto targets = c.i("targets", 1);
  const auto y = linear_scores(c, feature_rows(c, 0), targets);
  const auto how = post_transform_of(c);
  return {targets > 1 ? post_transformed(c, y, how) : single_score(c, y, how)};
}

Values convert_linear_classifier(Call& c) {
  const auto labels = class_labels(c, "classlabels_ints", "classlabels_strings");
  const auto how = post_transform_of(c);
  const auto x = feature_rows(c, 0);
  const auto& shape = c.shape(x);
  auto targets = std::ssize(c.floats("intercepts"));
  if (targets == 0 && shape.ranked() && shape[1].known() && shape[1].size() > 0)
    targets = std::ssize(c.floats("coefficients")) / shape[1].size();
  if (targets == 0) targets = std::max<std::int64_t>(1, std::ssize(labels));
  const auto scores = linear_scores(c, x, targets);
  if (targets > 1) {
    if (std::ssize(labels) != targets) c.fail("{} labels for {} classes", labels.size(), targets);
    return {best_labels(c, scores, labels), post_transformed(c, scores, how)};
  }
  if (labels.size() != 2) c.fail("{} labels for one score, wanted 2", labels.size());
  const auto is_second = c.add(Greater{}, {scores, c.number_like(0, scores)});
  return {chosen_labels(c, is_second, labels[0], labels[1]), scores_of_two(c, scores, how, true)};
}

}  // namespace

void register_ml_linear(ConverterTable& t) {
  t.add(kMl, "LinearClassifier", convert_linear_classifier);
  t.add(kMl, "LinearRegressor", convert_linear_regressor);
}

}  // namespace lamina::onnx
