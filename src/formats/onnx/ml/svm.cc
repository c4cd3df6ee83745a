/// ai.onnx.ml: support vector machines, as products of matrices.
#include <algorithm>
#include <cmath>

#include "formats/onnx/build.h"
#include "formats/onnx/ml/ml.h"
#include "ops/activation.h"
#include "ops/coupling.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/reduction.h"

namespace lamina::onnx {
namespace {

ValueId matrix(Call& c, std::int64_t rows, std::int64_t columns, const Floats& values) {
  return c.constant(from_doubles(ElementType::f32, {rows, columns}, values));
}

/// Support vectors [count, features].
struct Vectors {
  Floats values;
  std::int64_t count = 0, features = 0;
};

Vectors read_vectors(Call& c, ValueId x, std::int64_t count) {
  Vectors v{c.floats("support_vectors"), count, 0};
  const auto size = std::ssize(v.values);
  if (size == 0 || count > size || size % count != 0)
    c.fail("support_vectors has {} numbers for {} vectors", size, count);
  v.features = size / count;
  const auto& shape = c.shape(x);
  if (shape.ranked() && !shape[1].fits(v.features))
    c.fail("support vectors have {} features, the input has {}", v.features, to_string(shape));
  return v;
}

/// exp(-gamma |x - v|^2) by |x|^2 - 2 x v + |v|^2, from the middle of the vectors, where the three are small.
ValueId radial(Call& c, ValueId x, const Vectors& v, double gamma) {
  const auto features = static_cast<std::size_t>(v.features);
  Floats middle(features), centered = v.values, squares(static_cast<std::size_t>(v.count));
  for (std::size_t i = 0; i < centered.size(); ++i)
    middle[i % features] += centered[i] / static_cast<double>(v.count);
  for (auto& m : middle) m = static_cast<double>(static_cast<float>(m));
  for (std::size_t i = 0; i < centered.size(); ++i) {
    centered[i] = static_cast<double>(static_cast<float>(centered[i] - middle[i % features]));
    squares[i / features] += centered[i] * centered[i];
  }
  const auto from = subtract(c, x, floats_constant(c, middle));
  const auto own = c.add(ReduceSum{{true}}, {multiply(c, from, from), c.ints_constant({1})});
  const auto product = c.add(MatMul{false, true}, {from, matrix(c, v.count, v.features, centered)});
  const auto both = add(c, own, floats_constant(c, squares));
  const auto distance = subtract(c, both, multiply(c, product, c.number_like(2, x)));
  const auto positive = c.add(Maximum{}, {distance, c.number_like(0, x)});
  return c.add(Exp{}, {multiply(c, positive, c.number_like(-gamma, x))});
}

/// The kernel function of rows and support vectors: [N, vectors].
ValueId kernels(Call& c, ValueId x, const Vectors& v) {
  const auto kind = c.s("kernel_type", "LINEAR");
  auto parameters = c.floats("kernel_params");
  if (!parameters.empty() && parameters.size() != 3)
    c.fail("kernel_params has {} numbers, wanted gamma, coef0, degree", parameters.size());
  parameters.resize(3);
  if (kind == "RBF") return radial(c, x, v, parameters[0]);
  const auto dot = c.add(MatMul{false, true}, {x, matrix(c, v.count, v.features, v.values)});
  if (kind == "LINEAR") return dot;
  const auto scaled =
      add(c, multiply(c, dot, c.number_like(parameters[0], x)), c.number_like(parameters[1], x));
  if (kind == "SIGMOID") return c.add(Tanh{}, {scaled});
  if (kind == "POLY") return c.add(Power{}, {scaled, c.number_like(parameters[2], x)});
  c.fail("kernel_type is \"{}\", wanted LINEAR, POLY, RBF or SIGMOID", kind);
}

Values convert_svm_regressor(Call& c) {
  const auto x = feature_rows(c, 0);
  const auto coefficients = c.floats("coefficients"), rho = c.floats("rho");
  const auto count = c.i("n_supports", 0);
  if (coefficients.empty() || rho.empty()) c.fail("has no coefficients or no rho");
  if (count < 0) c.fail("n_supports is {}, wanted 0 or more", count);
  ValueId rows = x;
  if (count > 0) {
    if (std::ssize(coefficients) != count)
      c.fail("{} coefficients for {} support vectors", coefficients.size(), count);
    rows = kernels(c, x, read_vectors(c, x, count));
  } else if (const auto& shape = c.shape(x); shape.ranked() && !shape[1].fits(std::ssize(coefficients))) {
    c.fail("{} coefficients for features of {}", coefficients.size(), to_string(shape));
  }
  const auto dot = c.add(MatMul{false, true}, {rows, matrix(c, 1, std::ssize(coefficients), coefficients)});
  const auto score = add(c, dot, c.number_like(rho[0], dot));
  if (!c.flag("one_class")) return {single_score(c, score, post_transform_of(c))};
  const auto is_in = c.add(Greater{}, {score, c.number_like(0, score)});
  return {c.add(Select{}, {is_in, c.number_like(1, score), c.number_like(-1, score)})};
}

/// A classifier of pairs of classes.
struct Pairs {
  std::int64_t classes = 0;
  Ints counts;  ///< support vectors of each class
  std::int64_t count() const { return classes * (classes - 1) / 2; }
};

/// Scores of all pairs [N, pairs]: above 0 it is the pair's first class.
ValueId pair_scores(Call& c, ValueId x, const Pairs& p) {
  std::int64_t vectors = 0;
  const auto most = std::ssize(c.floats("support_vectors"));
  for (const auto n : p.counts) {
    if (n < 0 || n > most) c.fail("vectors_per_class has {}, wanted 0..{}", n, most);
    vectors += n;
  }
  const auto coefficients = c.floats("coefficients"), rho = c.floats("rho");
  const auto pairs = p.count();
  if (std::ssize(rho) != pairs) c.fail("rho has {} numbers for {} pairs of classes", rho.size(), pairs);
  if (std::ssize(coefficients) != (p.classes - 1) * vectors)
    c.fail("{} coefficients for {} classes and {} support vectors", coefficients.size(), p.classes, vectors);
  const auto k = kernels(c, x, read_vectors(c, x, vectors));
  spend(c, pairs * vectors);
  Floats weights(static_cast<std::size_t>(pairs * vectors));
  Ints starts{0};
  for (const auto n : p.counts) starts.push_back(starts.back() + n);
  // A row of coefficients leaves out its class's own pair: that of class i with j > i is row j - 1, that of
  // class j with i is row i.
  std::int64_t pair = 0;
  for (std::int64_t i = 0; i < p.classes; ++i)
    for (auto j = i + 1; j < p.classes; ++j, ++pair)
      for (const auto& [own, row] : {std::pair(i, j - 1), std::pair(j, i)})
        for (auto v = starts[static_cast<std::size_t>(own)]; v < starts[static_cast<std::size_t>(own) + 1];
             ++v)
          weights[static_cast<std::size_t>(pair * vectors + v)] =
              coefficients[static_cast<std::size_t>(row * vectors + v)];
  const auto dot = c.add(MatMul{false, true}, {k, matrix(c, pairs, vectors, weights)});
  return add(c, dot, floats_constant(c, rho));
}

/// How many pairs each class has won: [N, classes].
ValueId votes_of(Call& c, ValueId scores, const Pairs& p) {
  spend(c, p.count() * p.classes);
  Floats gains(static_cast<std::size_t>(p.count() * p.classes)), lost(static_cast<std::size_t>(p.classes));
  std::int64_t pair = 0;
  for (std::int64_t i = 0; i < p.classes; ++i)
    for (auto j = i + 1; j < p.classes; ++j, ++pair) {
      gains[static_cast<std::size_t>(i * p.count() + pair)] = 1;
      gains[static_cast<std::size_t>(j * p.count() + pair)] = -1;
      lost[static_cast<std::size_t>(j)] += 1;
    }
  const auto won = c.convert(c.add(Greater{}, {scores, c.number_like(0, scores)}), ElementType::f32);
  const auto votes = c.add(MatMul{false, true}, {won, matrix(c, p.classes, p.count(), gains)});
  return add(c, votes, floats_constant(c, lost));
}

/// Platt's sigmoid of each pair's score, then the classes' probabilities.
ValueId probabilities(Call& c, ValueId scores, const Pairs& p) {
  const auto a = c.floats("prob_a"), b = c.floats("prob_b");
  if (std::ssize(a) != p.count() || std::ssize(b) != p.count())
    c.fail("prob_a has {} numbers and prob_b {}, wanted {}, one for each pair of classes", a.size(), b.size(),
           p.count());
  const auto z = add(c, multiply(c, scores, floats_constant(c, a)), floats_constant(c, b));
  const auto pairs = c.add(Sigmoid{}, {negated(c, z)});
  return c.add(PairwiseCoupling{p.classes}, {c.add(Clamp{1e-7, 1 - 1e-7}, {pairs})});
}

/// An SVM without support vectors: a score for each class.
Values linear_classes(Call& c, ValueId x, const Ints& labels, PostTransform how) {
  const auto coefficients = c.floats("coefficients"), rho = c.floats("rho");
  const auto classes = std::ssize(labels), count = std::ssize(coefficients);
  if (rho.empty() || count == 0 || count % classes != 0)
    c.fail("{} coefficients and {} rho for {} classes", count, rho.size(), classes);
  if (const auto& shape = c.shape(x); shape.ranked() && !shape[1].fits(count / classes))
    c.fail("{} coefficients for {} classes and features of {}", count, classes, to_string(shape));
  const auto dot = c.add(MatMul{false, true}, {x, matrix(c, classes, count / classes, coefficients)});
  const auto scores = add(c, dot, c.number_like(rho[0], dot));
  auto y = best_labels(c, scores, labels);
  if (classes == 2) {
    // ONNX Runtime's way: the second class, where the best score is a probability that is high, or positive.
    const bool positive =
        std::all_of(coefficients.begin(), coefficients.end(), [](double v) { return v >= 0; });
    const auto best = c.add(ReduceMax{{false}}, {scores, c.ints_constant({1})});
    const auto border = c.number_like(positive ? 0.5 : 0, scores);
    const auto is_second =
        positive ? c.add(GreaterEqual{}, {best, border}) : c.add(Greater{}, {best, border});
    y = c.add(Select{}, {is_second, c.int_constant(labels[1]), y});
  }
  return {y, post_transformed(c, scores, how)};
}

Values convert_svm_classifier(Call& c) {
  const auto labels = class_labels(c, "classlabels_ints", "classlabels_strings");
  const auto how = post_transform_of(c);
  const auto x = feature_rows(c, 0);
  Pairs p{std::ssize(labels), c.ints("vectors_per_class")};
  if (p.classes < 2 || p.classes > 4096) c.fail("has {} labels, wanted 2..4096", p.classes);
  if (std::all_of(p.counts.begin(), p.counts.end(), [](auto n) { return n == 0; }))
    return linear_classes(c, x, labels, how);
  if (std::ssize(p.counts) != p.classes)
    c.fail("vectors_per_class has {} numbers for {} classes", p.counts.size(), p.classes);
  const auto scores = pair_scores(c, x, p);
  const auto y = best_labels(c, votes_of(c, scores, p), labels);
  if (c.has_attribute("prob_a") && !c.floats("prob_a").empty())
    return {y, post_transformed(c, probabilities(c, scores, p), how)};
  if (p.classes > 2) return {y, post_transformed(c, scores, how)};
  return {y, scores_of_two(c, scores, how, how != PostTransform::none)};
}

}  // namespace

void register_ml_svm(ConverterTable& t) {
  t.add(kMl, "SVMClassifier", convert_svm_classifier);
  t.add(kMl, "SVMRegressor", convert_svm_regressor);
}

}  // namespace lamina::onnx
