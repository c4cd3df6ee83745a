/// ai.onnx.ml: TreeEnsemble, TreeEnsembleRegressor, TreeEnsembleClassifier.
#include <algorithm>
#include <array>
#include <limits>

#include "formats/onnx/build.h"
#include "formats/onnx/ml/forest_lists.h"
#include "formats/onnx/ml/ml.h"
#include "ops/elementwise.h"

namespace lamina::onnx {
namespace {

TreeAggregate aggregate_named(const Call& c) {
  const auto name = c.s("aggregate_function", "SUM");
  if (name == "SUM") return TreeAggregate::sum;
  if (name == "AVERAGE") return TreeAggregate::average;
  if (name == "MIN") return TreeAggregate::min;
  if (name == "MAX") return TreeAggregate::max;
  c.fail("aggregate_function is \"{}\", wanted SUM, AVERAGE, MIN or MAX", name);
}

/// Rows in the type that the trees compare in.
ValueId rows_for(Call& c, bool is_double) {
  const auto x = feature_rows(c, 0, true);
  return is_double ? c.convert(x, ElementType::f64) : x;
}

Values convert_regressor(Call& c) {
  const auto targets = c.i("n_targets", 1);
  const auto read = read_forest(c, "target", targets);
  const auto base = read_numbers(c, "base_values");
  if (!base.values.empty() && std::ssize(base.values) != targets)
    c.fail("{} base values for {} targets", base.values.size(), targets);
  const auto x = rows_for(c, read.is_double || base.is_double);
  const auto y = c.convert(read.forest.add_to(c, x, aggregate_named(c), 0, base.values), ElementType::f32);
  const auto how = post_transform_of(c);
  return {targets > 1 ? post_transformed(c, y, how) : single_score(c, y, how)};
}

/// Trees that vote for one class of two only, which is how converters write binary classifiers. Votes that
/// are never negative are probabilities.
Values one_of_two(Call& c, Forest forest, ValueId x, const Ints& labels, const Floats& base,
                  PostTransform how) {
  const auto voted = forest.votes.empty() ? 0 : forest.votes[0].target;
  const bool is_probability =
      std::all_of(forest.votes.begin(), forest.votes.end(), [](const auto& v) { return v.weight >= 0; });
  for (auto& v : forest.votes) v.target = 0;
  forest.targets = 1;
  Floats own;
  if (!base.empty()) {
    if (voted == 1 && base.size() == 1)
      c.unsupported("one base value where the trees vote for the second class only; wanted two or none");
    own = {base[static_cast<std::size_t>(voted)]};
  }
  const auto score = c.convert(forest.add_to(c, x, TreeAggregate::sum, 0, own), ElementType::f32);
  const auto border = c.number_like(is_probability ? 0.5 : 0, score);
  const auto y = chosen_labels(c, c.add(Greater{}, {score, border}), labels[0], labels[1]);
  if (voted == 0) return {y, scores_of_two(c, score, how, is_probability)};
  auto first = multiply(c, score, c.number_like(0, score));
  if (!base.empty()) first = add(c, first, c.number_like(base[0], score));
  return {y, post_transformed(c, c.concat({first, score}, 1), how)};
}

Values convert_classifier(Call& c) {
  const auto labels = class_labels(c, "classlabels_int64s", "classlabels_strings");
  if (labels.empty()) c.fail("has no labels");
  const auto classes = std::ssize(labels);
  const auto read = read_forest(c, "class", classes);
  const auto& forest = read.forest;
  const auto base = read_numbers(c, "base_values");
  const auto how = post_transform_of(c);
  const auto count = std::ssize(base.values);
  if (count != 0 && count != classes && !(classes == 2 && count == 1))
    c.fail("{} base values for {} classes", count, classes);
  const auto x = rows_for(c, read.is_double || base.is_double);
  if (classes == 1) {
    const auto score = c.convert(forest.add_to(c, x, TreeAggregate::sum, 0, base.values), ElementType::f32);
    const auto y = chosen_labels(c, c.add(Greater{}, {score, c.number_like(0, score)}), 0, 1);
    return {y, single_score(c, score, how)};
  }
  const bool votes_for_one = std::all_of(forest.votes.begin(), forest.votes.end(),
                                         [&](const auto& v) { return v.target == forest.votes[0].target; });
  if (classes == 2 && votes_for_one) return one_of_two(c, forest, x, labels, base.values, how);
  if (count != 0 && count != classes)
    c.fail("{} base value for {} classes, wanted {}", count, classes, classes);
  // A class that no tree votes for has the score 0, but is not the best one unless it has a base value.
  const auto maybe = forest.maybe_unvoted();
  const bool all_voted = count != 0 || std::none_of(maybe.begin(), maybe.end(), [](bool v) { return v; });
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  const auto votes = c.convert(forest.add_to(c, x, TreeAggregate::sum, all_voted ? 0 : kNone, base.values),
                               ElementType::f32);
  auto scores = votes;
  if (!all_voted)
    scores = c.add(Select{},
                   {c.add(Equal{}, {votes, c.number_like(kNone, votes)}), c.number_like(0, votes), votes});
  return {best_labels(c, votes, labels), post_transformed(c, scores, how)};
}

/// Gives the type of its input.
Values convert_tree_ensemble(Call& c) {
  const auto element = c.known_element(c.in(0));
  const auto read = read_tree_ensemble(c);
  const auto aggregate = c.i("aggregate_function", 1);
  constexpr std::array functions{TreeAggregate::average, TreeAggregate::sum, TreeAggregate::min,
                                 TreeAggregate::max};
  if (aggregate < 0 || aggregate >= std::ssize(functions))
    c.fail("aggregate_function is {}, wanted 0..3", aggregate);
  const auto how = post_transform_numbered(c, c.i("post_transform", 0));
  const auto x = rows_for(c, read.is_double);
  const auto y = read.forest.add_to(c, x, functions[static_cast<std::size_t>(aggregate)], 0, {});
  return {
      c.convert(read.forest.targets > 1 ? post_transformed(c, y, how) : single_score(c, y, how), element)};
}

}  // namespace

void register_ml_trees(ConverterTable& t) {
  t.add(kMl, "TreeEnsemble", convert_tree_ensemble);
  t.add(kMl, "TreeEnsembleClassifier", convert_classifier);
  t.add(kMl, "TreeEnsembleRegressor", convert_regressor);
}

}  // namespace lamina::onnx
